"""Common code of benchmarks: command line, alternating rounds, medians, results and tables.

Belongs here: reading options before anything starts, keeping the output of measured programs out of
the benchmark's own, and writing results. Belongs elsewhere: the measurements, their services
(`services`).
"""

import argparse
import json
import os
import platform
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
#: Directory for the output of Dagster, Spark and the clients.
LOGS: Final = ROOT / ".fairlead" / "benchmarks"
_WIDTH: Final = 140

T = TypeVar("T")


@dataclass(frozen=True)
class Bench:
    """A running benchmark.

    Parameters
    ----------
    options
        The parsed options of the command line.
    console
        The console for the benchmark's output.
    results
        The JSON file for the figures, in the same folder as the benchmark's module.
    load
        The machine's load average over one minute, at the start.
    """

    options: argparse.Namespace
    console: Console
    results: Path
    load: float

    @property
    def keeps(self) -> bool:
        """Whether the figures are written to `results`; false in a trial run."""
        return bool(self.options.answer == self.results)

    def log(self, *parts: object) -> None:
        """Print a line about progress."""
        self.console.log(*parts)

    def show(self, title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table with the first column aligned left and the others right."""
        table = Table()
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="right" if number else "left")
        for row in rows:
            table.add_row(*("" if cell is None else str(cell) for cell in row))
        self.console.print(f"\n[bold]{title}[/bold]", table)

    def write(self, figures: Mapping[str, Any]) -> None:
        """Write figures and a description of the machine to `results`."""
        machine = {
            "processor": platform.machine(),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "load before": round(self.load, 1),
            "load after": round(os.getloadavg()[0], 1),
        }
        text = json.dumps({"machine": machine, **figures}, indent=1)
        self.options.answer.write_text(f"{text}\n")


def parser(doc: str | None, *, rounds: int | None = None) -> argparse.ArgumentParser:
    """Return an argument parser; `doc` is the benchmark's docstring.

    `rounds` is the default number of rounds; None: the benchmark has no such option.
    """
    found = argparse.ArgumentParser(description=(doc or "").partition("\n\n")[0])
    if rounds is not None:
        found.add_argument("--rounds", type=int, default=rounds, help="default: %(default)s")
    return found


@contextmanager
def measuring(options: argparse.ArgumentParser, results: Path) -> Iterator[Bench]:
    """Parse the command line; inside the context, only the yielded benchmark prints.

    All other output of this process and its children, such as errors of clients that outlive their
    broker, goes to a log file in `LOGS`. If the benchmark fails, its error is printed.
    """
    options.add_argument(
        "--answer", type=Path, default=results, help="where figures go, if not beside the others"
    )
    given = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that context managers exit
    LOGS.mkdir(parents=True, exist_ok=True)
    path = LOGS / f"{results.stem}.log"
    terminals = os.dup(1), os.dup(2)
    with path.open("wb") as log:
        for number in (1, 2):
            os.dup2(log.fileno(), number)
    with os.fdopen(os.dup(terminals[0]), "w") as terminal:
        console = Console(file=terminal, width=_WIDTH, log_path=False, highlight=False)
        try:
            yield Bench(given, console, results, os.getloadavg()[0])
        except BaseException:
            console.print(f"The benchmark failed. Its output so far: {path}")
            for number, back in enumerate(terminals, start=1):
                os.dup2(back, number)
            raise


def in_turns(rounds: int, *sides: Callable[[int], T], warm_ups: int = 0) -> list[list[T]]:
    """Call functions alternately, once per round, so that a busy machine slows all of them down.

    Parameters
    ----------
    sides
        The functions to compare. Each is called with the number of the round, counted from the
        first warm-up.
    warm_ups
        Number of additional rounds at the beginning whose results are omitted.

    Returns
    -------
    The results of each side's rounds.

    Examples
    --------
    >>> in_turns(2, lambda number: number, lambda number: -number, warm_ups=1)
    [[1, 2], [-1, -2]]
    """
    turns = [[side(number) for side in sides] for number in range(warm_ups + rounds)]
    return [list(column) for column in zip(*turns[warm_ups:], strict=True)]


def seconds(action: Callable[[], object]) -> float:
    """Return the duration of one call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def median(values: Iterable[float], digits: int = 3) -> float:
    """Return the median, rounded."""
    return round(statistics.median(values), digits)


def rounded(value: Any, digits: int = 3) -> Any:
    """Return a value with every float in it rounded, also inside dicts and lists."""
    if isinstance(value, Mapping):
        return {name: rounded(part, digits) for name, part in value.items()}
    if isinstance(value, list):
        return [rounded(part, digits) for part in value]
    return round(value, digits) if isinstance(value, float) else value


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a new process, which imports only the function's module."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
