"""Files that record which commands run, and which processes (parts) these commands started.

Belongs here: recording processes in a state directory, one file per process, and reading which of
them still run. Belongs elsewhere: ending them (`ending`), and services, which are found by their
command lines (`processes`).
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
from fairlead.errors import SandboxError

_FOLDER: Final = "running"
#: Commands that start services or parts. Only one of them may run in a state directory.
HOLDERS: Final = frozenset({"fairlead demo", "fairlead dev", "fairlead up"})


@dataclass(frozen=True)
class RecordedProcess:
    """A recorded process.

    Parameters
    ----------
    name
        The name of the command or part for users, such as `fairlead up`.
    pid, started_at
        The process; its start time distinguishes it from a later process with the same pid.
    """

    name: str
    pid: int
    started_at: float

    def process(self) -> psutil.Process | None:
        """Return the process; None if it has ended."""
        return same_process(self.pid, self.started_at)


@contextmanager
def recorded(state_dir: Path, name: str, pid: int | None = None) -> Iterator[None]:
    """Record a process, by default this process, until the `with` block ends.

    If this process is killed, the record remains until `still_running` finds that the recorded
    process has ended.
    """
    process = psutil.Process(pid)
    record = RecordedProcess(name, process.pid, process.create_time())
    path = state_dir / _FOLDER / f"{process.pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(asdict(record)))
    unfinished.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def require_alone(state_dir: Path) -> None:
    """Raise an error if another command runs services or parts in the state directory.

    Raises
    ------
    SandboxError
        One of `HOLDERS` already runs in the directory.
    """
    for process in still_running(state_dir):
        if process.name in HOLDERS:
            raise SandboxError(
                f"`{process.name}` already runs as process {process.pid}: end it first, or use "
                "another state directory (FAIRLEAD_STATE_DIR)"
            )


def still_running(state_dir: Path) -> list[RecordedProcess]:
    """Return the recorded processes that still run; remove the records of the others."""
    running = []
    for path in sorted((state_dir / _FOLDER).glob("*.json")):
        try:
            entry = RecordedProcess(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):  # removed, damaged, or of another version
            continue
        if entry.process() is None:
            path.unlink(missing_ok=True)
        else:
            running.append(entry)
    return running
