"""The states of the processes (parts) that a supervisor runs, in a file for other processes.

Belongs here: writing and reading the file. Belongs elsewhere: starting parts (`supervisor`).
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
        Start time of the part's process, in seconds since 1970; 0: never started.
    missing
        Why the part does not work now, as a phrase that follows the part's name, such as
        `is starting`; empty if the part works.
    """

    since: float
    missing: str


@contextmanager
def published(state_dir: Path) -> Iterator[Callable[[Mapping[str, PartState]], None]]:
    """Yield a function that writes the states of all parts to the file.

    The end of the `with` block removes the file. While the disk is full, the file keeps its old
    content.
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
    """Return the state of each part, by name; {} if no supervisor runs in the state directory."""
    try:
        states = json.loads((state_dir / _FILE).read_text())
        if same_process(states["pid"], states["started_at"]) is None:
            return {}
        return {name: PartState(**state) for name, state in states["parts"].items()}
    except (OSError, ValueError, TypeError, KeyError):  # no file, or a file of another version
        return {}
