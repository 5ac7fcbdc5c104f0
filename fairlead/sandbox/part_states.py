"""States of a supervisor's parts, in a file that other processes read.

Belongs here: writing and reading that file. Does not: starting parts (`supervisor`).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from fairlead.common.same_process import same_process

_FILE: Final = "parts.json"


@dataclass(frozen=True)
class PartState:
    """State of a part.

    Parameters
    ----------
    since
        Start time of its process, in seconds since 1970; 0: never started.
    missing
        Why it does not work now, as a phrase that follows its name; empty: it works.
    """

    since: float
    missing: str


@contextmanager
def published(state_dir: Path) -> Iterator[Callable[[Mapping[str, PartState]], None]]:
    """Yield a function that writes the states of all parts; the block's end removes the file.

    On a full disk the file keeps its old content until there is space.
    """
    path, process = state_dir / _FILE, psutil.Process()
    unfinished = path.with_suffix(f".{process.pid}")
    written = ""

    def publish(states: Mapping[str, PartState]) -> None:
        nonlocal written
        parts = {name: asdict(state) for name, state in states.items()}
        text = json.dumps({"pid": process.pid, "started_at": process.create_time(), "parts": parts})
        if text != written:
            with suppress(OSError):
                unfinished.write_text(text)
                unfinished.replace(path)
                written = text

    try:
        yield publish
    finally:
        path.unlink(missing_ok=True)


def part_states(state_dir: Path) -> dict[str, PartState]:
    """Return the state of each part by name; empty if no supervisor runs in the directory."""
    try:
        states = json.loads((state_dir / _FILE).read_text())
        if same_process(states["pid"], states["started_at"]) is None:
            return {}
        return {name: PartState(**state) for name, state in states["parts"].items()}
    except (OSError, ValueError, TypeError, KeyError):  # no file, or one of another version
        return {}
