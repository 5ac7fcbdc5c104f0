"""Service processes that outlive the process that started them.

Belongs here: starting a process detached from the terminal, finding it by its command line, ending
it, waiting with a deadline, locking. Belongs elsewhere: choosing which processes to start.

A process is found by its command line, which names a file of its state directory. Pid files would
not be safe: pids are reused, and if the starting process is killed before it writes the pid file,
the service cannot be found.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import Signals
from typing import Final

import psutil
from filelock import FileLock, Timeout

from fairlead.common.disk import room_in
from fairlead.errors import SandboxError

POLL_S: Final = 0.05
SPAWN_TIMEOUT_S: Final = 60.0
#: Maximum seconds for starting a service, which takes minutes on a busy machine.
START_TIMEOUT_S: Final = 900.0
STOP_GRACE_S: Final = 20.0
#: Number of lines of a log in an error message.
_TAIL_LINES: Final = 20


class Service:
    """A process that is found again by its mark: an argument that only its command line has.

    Parameters
    ----------
    name
        Name of the service in error messages.
    log
        The file with the process's output.
    mark
        The argument.
    """

    def __init__(self, name: str, log: Path, mark: str) -> None:
        self._name, self.log, self._mark = name, log, mark

    def process(self) -> psutil.Process | None:
        """Return the service's process, even if another program started it; None if none runs."""
        return find(lambda command: self._mark in command)

    def end(self, signal: Signals) -> None:
        """Send a signal to the process if it runs; kill it if it does not end in time."""
        if process := self.process():
            end(process, signal, grace_s=STOP_GRACE_S)

    def kill(self) -> None:
        """Kill the process, as in a crash (SIGKILL)."""
        self.end(Signals.SIGKILL)

    def rotate_log(self) -> None:
        """Rename the previous process's log; an older log is overwritten."""
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".previous.log"))

    def answers_or_ends(
        self, answers: Callable[[], bool], process: psutil.Process | None = None
    ) -> bool:
        """Wait until the process answers or ends; return whether the process still runs.

        `process` is by default the running process of the service.

        Raises
        ------
        SandboxError
            The process neither answers nor ends in time; the message has the end of its log.
        """
        process = process or self.process()

        def settled() -> bool:
            return process is None or ended(process) or answers()

        if not wait_until(settled, timeout_s=START_TIMEOUT_S):
            raise self.failure(f"does not answer after {START_TIMEOUT_S:.0f} s")
        return process is not None and not ended(process)

    def require_answer(
        self, answers: Callable[[], bool], process: psutil.Process | None = None
    ) -> None:
        """Wait until the process answers; raise SandboxError if it ends or is too slow."""
        if not self.answers_or_ends(answers, process):
            raise self.failure()

    def failure(self, what: str = "ended while it was starting") -> SandboxError:
        """Return an error with the end of the log."""
        return SandboxError(f"{self._name} {what}; the end of {self.log}:\n{tail(self.log)}")


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
) -> psutil.Process:
    """Start a process in a new session, and append its output to `log`.

    Ctrl-C in the terminal does not reach this process, so that services can be ended in order,
    after their clients. The process runs as `user`; None: as the present user.
    """
    with log.open("ab") as output:
        popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=cwd,
            env=env,
            user=user,
            group=user,
        )
    process = psutil.Process(popen.pid)
    # From here on, psutil waits for the process. Without a return code, Popen would warn that the
    # process still runs.
    popen.returncode = 0
    # Just after exec, the kernel shows no command line, and `find` would not find the process.
    wait_until(lambda: ended(process) or bool(_command_line(process)), timeout_s=SPAWN_TIMEOUT_S)
    return process


def find(matches: Callable[[Sequence[str]], bool]) -> psutil.Process | None:
    """Return a running process whose command line matches; None if there is none."""
    for pid in psutil.pids():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if matches(_command_line(process)) and not ended(process):
                return process
    return None


def members(group: int) -> list[psutil.Process]:
    """Return the running processes of a process group."""
    running = []
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if os.getpgid(pid) == group:
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    running.append(process)
    return running


def ended(process: psutil.Process) -> bool:
    """Whether a process has ended, even if its parent has not reaped it."""
    if _reaped(process):
        return True
    try:
        zombie = process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    if zombie:
        _reaped(process)  # reap the zombie if it is a child of this process
    return zombie


def _reaped(process: psutil.Process) -> bool:
    try:
        process.wait(timeout=0)
    except psutil.TimeoutExpired:  # it runs, or is not a child of this process
        return False
    return True


def end(process: psutil.Process, signal: Signals, *, grace_s: float) -> bool:
    """Send `signal` to a process; if it has not ended after `grace_s` seconds, send SIGKILL.

    Returns
    -------
    Whether the process ended without SIGKILL.
    """
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal)
    if wait_until(lambda: ended(process), timeout_s=grace_s):
        return True
    with suppress(psutil.NoSuchProcess):
        process.kill()
    wait_until(lambda: ended(process), timeout_s=grace_s)
    return False


@contextmanager
def exclusively(state_dir: Path, name: str, what: str) -> Iterator[None]:
    """Hold a lock so that no other process can start or stop the same services meanwhile.

    Parameters
    ----------
    name
        Name of the lock file in the state directory.
    what
        Name of the services, for the error message.

    Raises
    ------
    SandboxError
        Another process has held the lock for `START_TIMEOUT_S` seconds.
    FileSystemError
        The disk of the state directory is full.
    """
    try:
        with room_in(state_dir):
            state_dir.mkdir(parents=True, exist_ok=True)
            with FileLock(state_dir / name, timeout=START_TIMEOUT_S):
                yield
    except Timeout as error:
        raise SandboxError(f"Another process is still starting or stopping {what}") from error


def wait_until(condition: Callable[[], bool], *, timeout_s: float) -> bool:
    """Poll until `condition` is true; return False if it is not true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _command_line(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def tail(log: Path) -> str:
    """Return the last lines of a log, indented, without Java's stack traces."""
    if not log.exists():
        return "  (no log)"
    lines = log.read_text(errors="replace").splitlines()
    told = [line for line in lines if not line.startswith("\tat ")][-_TAIL_LINES:]
    return "\n".join(f"  {line}" for line in told) or "  (empty log)"
