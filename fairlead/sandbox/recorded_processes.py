"""Which processes were started in a state directory and go on by themselves, as files.

Belongs here: writing them down, and reading who of them still runs. Does not: ending them
(`ending`), nor services, which are found by their command lines (`processes`).
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from fairlead.common.same_process import same_process

_FOLDER: Final = "running"


@dataclass(frozen=True)
class RecordedProcess:
    """A process that was written down.

    Parameters
    ----------
    name
        What it is, as people know it: `fairlead up`.
    pid, started_at
        Its process; pids are used again.
    """

    name: str
    pid: int
    started_at: float

    def process(self) -> psutil.Process | None:
        """Return that very process; None: it runs no more."""
        return same_process(self.pid, self.started_at)


@contextmanager
def recorded(state_dir: Path, name: str, pid: int | None = None) -> Iterator[None]:
    """Write a process down, this one by default, until the block ends.

    A process that is killed stays written down: `still_running` knows that it is gone.
    """
    process = psutil.Process(pid)
    path = state_dir / _FOLDER / f"{process.pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    about = RecordedProcess(name, process.pid, process.create_time())
    unfinished.write_text(json.dumps(asdict(about)))
    unfinished.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def still_running(state_dir: Path) -> list[RecordedProcess]:
    """Return the processes that were written down and still run, by pid."""
    found = []
    for path in sorted((state_dir / _FOLDER).glob("*.json")):
        try:
            found_here = RecordedProcess(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):  # gone meanwhile, damaged, or another version's
            continue
        if found_here.process() is None:
            path.unlink(missing_ok=True)
        else:
            found.append(found_here)
    return found
