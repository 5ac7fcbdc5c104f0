"""Keeps processes running: restarts each process that ends, and finally ends all of them.

Belongs here: starting, watching and ending processes, and their common log. Belongs elsewhere:
which processes run (`fairlead.surfaces.up`).
"""

import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self, TextIO
from urllib.request import urlopen

import psutil

from fairlead.common.visible import visible
from fairlead.errors import SandboxError
from fairlead.sandbox.part_states import PartState, published
from fairlead.sandbox.processes import POLL_S, members, wait_until
from fairlead.sandbox.recorded_processes import recorded

#: Seconds after SIGINT until a process that has not ended is killed.
GRACE_S: Final = 10.0
_KILLED_S: Final = 3.0
#: Seconds until a process that ended is started again; doubled each time, up to a minute.
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
#: Seconds. If a process has run for this long before it ends, it is started again after
#: `_FIRST_WAIT_S`.
_STEADY_S: Final = 60.0
#: `wait_ready` raises an error if a part has ended this number of times and is not ready.
_TRIES: Final = 3
#: Seconds to wait for a part's answer over HTTP. Meanwhile no other part is checked.
_ANSWER_S: Final = 10.0
_LAST_LINES: Final = 10
#: Width of the first column of the log, the name of a part: the length of the longest name.
NAME_WIDTH: Final = 9
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Part:
    """A process to keep running.

    Parameters
    ----------
    name
        Name of the part, at the beginning of its lines in the log.
    command
        A program and its arguments.
    answers
        An HTTP address, or the path of a Unix socket, that answers when the part is ready. None:
        the part is ready as soon as it is started.
    ends
        Whether the command is supposed to end. When it has ended with status 0, the part is ready
        and is not started again.
    after
        Name of a part that must be ready before this part is started; None: no part.
    """

    name: str
    command: Sequence[str]
    answers: str | Path | None = None
    ends: bool = False
    after: str | None = None


class Supervisor:
    """Keeps parts running during a `with` block, and ends all of them at the end of the block.

    Parameters
    ----------
    parts
        The parts to run.
    log
        File for the output of all parts; each line begins with the part's name.
    tell
        Called from another thread when a part ends, with a line that says when the part is started
        again.
    state_dir
        Directory for the states of the parts (`part_states`), and for records of their processes.
        If this process is killed, another process can find and end the recorded processes.
    environment
        Environment variables of the parts.
    """

    def __init__(
        self,
        parts: Iterable[Part],
        *,
        log: TextIO,
        tell: Callable[[str], None],
        state_dir: Path,
        environment: Mapping[str, str],
    ) -> None:
        self.tell, self.state_dir, self.environment = tell, state_dir, environment
        self._log, self._lock = log, threading.Lock()
        self._children = [_Child(part, self) for part in parts]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor")

    def __enter__(self) -> Self:
        """Start all parts."""
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Send SIGINT to all parts, as Ctrl-C does; kill parts that do not end within `GRACE_S`."""
        self._stopped.set()
        with suppress(KeyboardInterrupt, SystemExit):  # a second Ctrl-C kills parts at once
            self._thread.join()
            for child in self._children:
                child.send_signal(signal.SIGINT)
            wait_until(lambda: not any(map(_Child.running, self._children)), timeout_s=GRACE_S)
        self._thread.join()
        for child in self._children:
            child.send_signal(signal.SIGKILL)
        wait_until(lambda: not any(map(_Child.running, self._children)), timeout_s=_KILLED_S)
        for child in self._children:
            if remaining := child.running():
                pids = ", ".join(str(process.pid) for process in remaining)
                self.tell(f"{child.part.name} does not end: processes {pids}")
            child.close()

    def wait_ready(self, *names: str) -> None:
        """Wait until parts are ready.

        Raises
        ------
        SandboxError
            A part ended several times before it was ready; the message has its last lines.
        """
        for child in (started for started in self._children if started.part.name in names):
            while not child.ready.wait(POLL_S):
                if child.failures >= _TRIES:
                    raise SandboxError(
                        f"{child.part.name} ended {child.failures} times before it was ready; "
                        f"its last lines:\n{child.last_lines()}"
                    )

    def write(self, name: str, line: str) -> None:
        """Write a line of a part to the log."""
        # If the file is closed or the disk is full, the line is lost, but the part keeps running.
        with self._lock, suppress(ValueError, OSError):
            self._log.write(f"{name:<{NAME_WIDTH}} | {line}\n")
            self._log.flush()

    def _run(self) -> None:
        by_name = {child.part.name: child for child in self._children}
        with published(self.state_dir) as publish:
            while not self._stopped.wait(POLL_S):
                for child in self._children:
                    before = child.part.after
                    if before is None or child.started or by_name[before].ready.is_set():
                        with suppress(OSError):  # no memory for a process, or `tell` cannot write
                            child.tend()
                publish({name: child.state() for name, child in by_name.items()})


class _Child:
    """The process of a part, which is started again when it ends.

    Only the supervisor's thread calls `tend`, which starts the process.
    """

    def __init__(self, part: Part, supervisor: Supervisor) -> None:
        self.part, self._supervisor = part, supervisor
        self.ready = threading.Event()
        self.failures = 0
        self._popen: subprocess.Popen[str] | None = None
        self._recording = ExitStack()
        self._began = self._due = self._began_at = 0.0
        self._ended = ""
        self._wait_s = _FIRST_WAIT_S
        self._lines: list[str] = []

    @property
    def started(self) -> bool:
        """Whether the part has been started and has not ended, as of the last check."""
        return self._popen is not None

    def state(self) -> PartState:
        """Return the state of the part."""
        if self.ready.is_set():
            return PartState(self._began_at, "")
        if self._popen is not None:
            return PartState(self._began_at, "is starting")
        return PartState(self._began_at, self._ended or f"waits for {self.part.after}")

    def tend(self) -> None:
        """If the part runs, check its state; if not, start it when its waiting time is over."""
        now = time.monotonic()
        if self._popen is None:
            if now >= self._due:
                self._start(now)
            return
        code = self._popen.poll()
        if code is None or (code == 0 and self.part.ends):
            if not self.ready.is_set() and self._answers(code):
                self.ready.set()
            if now - self._began > _STEADY_S:
                self._wait_s = _FIRST_WAIT_S
            return
        self._end_of(code, now)

    def _start(self, now: float) -> None:
        self._began, self._began_at = now, time.time()
        self._due = now + self._wait_s  # time of the next attempt if this one fails
        self._popen = subprocess.Popen(
            self.part.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=self._supervisor.environment,
            start_new_session=True,  # so Ctrl-C does not reach it, and `killpg` ends its group
        )
        reader = threading.Thread(target=self._read, args=(self._popen.stdout,), daemon=True)
        reader.start()
        with suppress(psutil.NoSuchProcess, OSError):
            self._recording.enter_context(
                recorded(self._supervisor.state_dir, self.part.name, self._popen.pid)
            )

    def _read(self, output: IO[str]) -> None:
        with output:
            for line in output:
                text = visible(_COLOURS.sub("", line.rstrip("\n")))
                self._lines = [*self._lines[1 - _LAST_LINES :], text]
                self._supervisor.write(self.part.name, text)

    def last_lines(self) -> str:
        """Return the last lines of the part's output, indented."""
        return "\n".join(f"  {line}" for line in self._lines) or "  (nothing)"

    def _answers(self, code: int | None) -> bool:
        answers = self.part.answers
        if answers is None:
            return not self.part.ends or code == 0
        try:
            if isinstance(answers, Path):
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(str(answers))
                    return True
            with urlopen(answers, timeout=_ANSWER_S):  # noqa: S310 - our own server
                return True
        except OSError:
            return False

    def _end_of(self, code: int, now: float) -> None:
        """Report that the part has ended, kill processes that it started, schedule its restart."""
        self.failures += 1
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        self.send_signal(signal.SIGKILL)
        self._recording.close()
        self.ready.clear()
        self._popen, self._due = None, now + self._wait_s
        self._ended = f"has ended ({how}): it is started again in {self._wait_s:.0f} s"
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)
        self._supervisor.tell(f"{self.part.name} {self._ended}")

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the part's process and to all processes that it has started."""
        if self._popen is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, number)

    def running(self) -> list[psutil.Process]:
        """Return the running processes of the part."""
        if self._popen is None:
            return []
        self._popen.poll()
        return members(self._popen.pid)

    def close(self) -> None:
        """Remove the record of the part's process."""
        if self._popen is not None:  # its last threads may take a moment to end
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(_KILLED_S)
        self._recording.close()
