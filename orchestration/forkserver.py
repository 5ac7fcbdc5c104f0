"""A process that has imported what runs need, and forks one for each.

`python -m orchestration.forkserver` runs it. Dagster, this code and Spark's client take seconds to
import, a fork takes none. Like multiprocessing's own fork server it has no connections that a child
could inherit half used, nor threads but those of libraries that know of forks; unlike it, it
serves processes that are not its parent: Dagster's daemon (`launcher`) and shells (`__main__`).
They go on without it. Nobody else than its user reaches it: its socket lies in `DAGSTER_HOME`,
closed to others. It is replaced by a new one once its sources have changed.

Belongs here: the server, and asking it. Does not: what is run.
"""

import argparse
import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from pathlib import Path
from threading import Thread
from typing import Any, Final, Self, TextIO

#: Imported before the first fork: what a planning run has imported at its end.
MODULES: Final = (
    "dagster_postgres",
    f"{__package__}.definitions",  # in a wheel this package is another one's
    f"{__package__}.launcher",
    f"{__package__}.shell",
    "pyspark.sql.connect.session",
    "pandas",
    "matplotlib.figure",
    "matplotlib.backends.backend_svg",
)
_SOCKET: Final = "runs.sock"
#: Bounds what hangs: an answer is a fork away.
_ANSWER_S: Final = 30.0
#: Whoever has begun to ask says all of it at once.
_QUESTION_S: Final = 2.0
#: So many may have connected and said nothing yet; beyond, the first of them is closed.
_SILENT: Final = 100
_REFUSED: Final = "not run: "
_GO: Final = b"go\n"
_PASSED_ON: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def socket_path(dagster_home: str | Path) -> Path:
    """Return where the server of a Dagster home listens."""
    return Path(dagster_home).expanduser() / _SOCKET


@dataclass(frozen=True)
class Forked:
    """A process that the server has forked for somebody; it waits for `go`.

    Parameters
    ----------
    pid
        Its process.
    _asked, _told
        Where it hears what to do, and where the server tells how it ended.
    """

    pid: int
    _asked: socket.socket
    _told: TextIO

    @classmethod
    def ask(
        cls,
        dagster_home: str | Path,
        function: str,
        words: Sequence[str],
        *,
        module: str | None = None,
        folder: str | None = None,
        outlives: bool = False,
    ) -> Self | None:
        """Have a process forked for a command, `module:function`, in this one's environment.

        Its output goes where this process' goes.

        Parameters
        ----------
        dagster_home
            Whose server is asked.
        function, words
            The command, and its arguments.
        module
            What the command is about; a server that was not told to import it refuses.
        folder
            From where modules are found; a server that found them from another one refuses.
        outlives
            Whether it goes on when this process has ended, whatever ends that.

        Returns
        -------
        None: no server runs there that would, or it does not answer; nothing is run.
        """
        asked = socket.socket(socket.AF_UNIX)
        try:
            question = {
                "interpreter": sys.executable,
                "code": __file__,
                "function": function,
                "words": list(words),
                "module": module,
                "modules from": folder,
                "environment": dict(os.environ),
                "folder": str(Path.cwd()),
                "umask": _umask(),
                "outlives": outlives,
            }
            asked.settimeout(_ANSWER_S)
            asked.connect(str(socket_path(dagster_home)))
            _require_own(asked)
            socket.send_fds(asked, [b"\n"], [0, 1, 2])
            asked.sendall(json.dumps(question).encode() + b"\n")
            told = asked.makefile()
            return cls(int(told.readline()), asked, told)
        except (OSError, ValueError):  # a process that was forked all the same ends unasked
            asked.close()
            return None

    def go(self) -> bool:
        """Let it run; False: it is gone, and has done nothing."""
        try:
            self._asked.sendall(_GO)
        except OSError:
            return False
        self._asked.settimeout(None)
        return True

    def wait(self) -> int:
        """Wait until it has ended; return its exit code, negative: by a signal, as subprocess does.

        A server that is killed meanwhile cannot tell: -9, once the process has ended.
        """
        with self._asked, self._told:
            return int(self._told.readline() or -signal.SIGKILL)


def run(function: str, words: Sequence[str]) -> int | None:
    """Run a command in a forked process as if it ran in this one; return its exit code.

    Signals that end this process are passed on. None: nobody forks here (`Forked.ask`).
    """
    passed_on = [caught for caught in _PASSED_ON if signal.getsignal(caught) != signal.SIG_IGN]
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)  # until there is whom to pass them on to
    try:
        home = os.environ.get("DAGSTER_HOME")
        forked = Forked.ask(home, function, words) if home else None
        if forked is None:
            return None
        pid = forked.pid

        def pass_on(number: int, _: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

        for number in passed_on:
            signal.signal(number, pass_on)
        if not forked.go():
            raise OSError(f"the fork server of {home} ended before process {pid} began: run again")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
    code = forked.wait()
    return code if code >= 0 else 128 - code


class ForkServer:
    """Listens in a Dagster home, and forks.

    Parameters
    ----------
    dagster_home
        Where its socket is.
    modules
        What it has imported, of which commands may be.
    began
        When it began to import, in nanoseconds since 1970: what is written later is not in it.

    Raises
    ------
    OSError
        Another one listens there, or the path is too long for a socket.
    """

    def __init__(self, dagster_home: Path, modules: Sequence[str], began: int) -> None:
        self._path = socket_path(dagster_home)
        self._modules = {None, *modules}
        self._began = began
        self._sources = _sources()
        self._context = get_context("fork")
        self._running: dict[int, tuple[ForkProcess, socket.socket]] = {}
        self._silent: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        with socket.socket(socket.AF_UNIX) as other:
            if not other.connect_ex(str(self._path)):
                raise OSError(f"a fork server listens at {self._path} already")
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            self._listener.bind(str(self._path))
        finally:
            os.umask(before)
        self._listener.listen()
        # What signals a process gets is written here, and wakes it up.
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)  # noqa: FBT003 - its name

    def serve(self) -> bool:
        """Fork for whoever asks, until it is to end or its sources have changed, and nothing runs.

        Returns
        -------
        Whether a new one is wanted.
        """
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # the wake-up tells
        ending, fresh = False, True
        try:
            while self._running or (fresh and not ending):
                # What ends the server comes first: whoever asks later than that is refused.
                waiting: list[socket.socket | int] = [self._woken, self._listener, *self._silent]
                waiting += self._running
                for ready in connection.wait(waiting):
                    if isinstance(ready, int):
                        self._ended(ready)
                    elif ready is self._woken:
                        told = set(self._woken.recv(64))
                        ending = ending or bool(told & {signal.SIGTERM, signal.SIGINT})
                    elif ready is self._listener:
                        self._accept()
                    elif isinstance(ready, socket.socket):
                        fresh = fresh and self._as_imported()
                        problem = "" if fresh else "the sources have changed"
                        self._hear(ready, "the server ends" if ending else problem)
        finally:
            signal.set_wakeup_fd(-1)
            self._path.unlink(missing_ok=True)
            for listener in (self._listener, *self._silent):
                listener.close()
        return not ending

    def _as_imported(self) -> bool:
        return all(_written(path) == at and at <= self._began for path, at in self._sources.items())

    def _accept(self) -> None:
        """Let somebody connect, who is heard when something is said: nobody else waits for that."""
        asked, _ = self._listener.accept()
        self._silent.append(asked)
        if len(self._silent) > _SILENT:
            self._silent.pop(0).close()

    def _hear(self, asked: socket.socket, problem: str) -> None:
        self._silent.remove(asked)
        try:
            asked.settimeout(_QUESTION_S)
            _require_own(asked)
            self._answer(asked, problem)
        except (OSError, ValueError, KeyError, TypeError) as error:
            with contextlib.suppress(OSError), asked:
                asked.sendall(f"{_REFUSED}{error}\n".encode())

    def _answer(self, asked: socket.socket, problem: str) -> None:
        _, handles, _, _ = socket.recv_fds(asked, 1, 3)
        try:
            with asked.makefile() as told:
                question = json.loads(told.readline())
            asked.settimeout(_ANSWER_S)
            if problem := problem or self._problem(question):
                raise ValueError(problem)
            process = self._context.Process(target=self._child, args=(question, handles, asked))
            process.start()
        finally:
            for handle in handles:
                os.close(handle)
        self._running[process.sentinel] = (process, asked)
        asked.sendall(f"{process.pid}\n".encode())

    def _problem(self, question: Mapping[str, Any]) -> str:
        """Say why a command would not be here what it is where it is asked for."""
        if (question["interpreter"], question["code"]) != (sys.executable, __file__):
            return "it is asked for by another interpreter, or another checkout"
        if question["module"] not in self._modules:
            return f"the server was not told to import {question['module']}"
        if question["modules from"] not in {None, str(Path.cwd())}:
            return f"the server has not found its modules from {question['modules from']}"
        return ""

    def _ended(self, sentinel: int) -> None:
        process, asked = self._running.pop(sentinel)
        process.join()
        with contextlib.suppress(OSError), asked:  # whoever asked may be gone
            asked.sendall(f"{process.exitcode}\n".encode())
        process.close()

    def _child(
        self, question: Mapping[str, Any], handles: Sequence[int], asked: socket.socket
    ) -> None:
        """Become what was asked for."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for open_socket in (self._listener, self._woken, self._waker, *self._silent):
            open_socket.close()
        for _, other in self._running.values():
            other.close()
        atexit._clear()  # the server's own  # noqa: SLF001
        if asked.recv(len(_GO)) != _GO:
            return  # nobody wants it any more
        if question["outlives"]:
            asked.close()
        else:
            Thread(target=_end_with, args=(asked,), daemon=True).start()
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True)
        os.chdir(question["folder"])
        os.umask(question["umask"])
        os.environ.clear()
        os.environ.update(question["environment"])
        time.tzset()
        sys.argv = [question["function"], *question["words"]]
        module, _, function = question["function"].partition(":")
        try:
            sys.exit(getattr(importlib.import_module(module), function)())
        finally:
            atexit._run_exitfuncs()  # multiprocessing's children leave them out  # noqa: SLF001


def main() -> None:
    """Serve in `DAGSTER_HOME`, with what is named imported first; ready once there is a socket."""
    began = time.time_ns()
    this = f"{__package__}.forkserver"
    parser = argparse.ArgumentParser(
        prog=f"python -m {this}", description="Fork a process for each run."
    )
    parser.add_argument(
        "modules",
        nargs="*",
        default=MODULES,
        metavar="MODULE",
        help="to import, where Dagster loads the code from others than Fairlead's own",
    )
    modules = parser.parse_args().modules
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        parser.error("DAGSTER_HOME is not set: it says whose runs are forked")
    # Whoever asks a server imports nothing.
    from fairlead.sandbox.recorded_processes import recorded  # noqa: PLC0415
    from fairlead.settings import load_settings  # noqa: PLC0415

    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # children do not write into pages that are shared
    try:
        with recorded(load_settings().state_dir.absolute(), "fork server"):
            again = ForkServer(Path(home), modules, began).serve()
    except OSError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    if again:
        os.execv(sys.executable, [sys.executable, "-m", this, *modules])  # noqa: S606 - itself


def _end_with(asked: socket.socket) -> None:
    """End this process as soon as whoever has asked for it is gone."""
    asked.settimeout(None)
    with contextlib.suppress(OSError):
        asked.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _require_own(peer: socket.socket) -> None:
    """Refuse another user's process, where the system tells whose it is.

    Raises
    ------
    PermissionError
        It is another user's.
    """
    if hasattr(socket, "SO_PEERCRED"):
        told = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", told)[1] != os.getuid():
            raise PermissionError("the other process is another user's")


def _umask() -> int:
    """Return this process' mask, from a child: who asks here sets it, for all threads."""
    asked = subprocess.run(["/bin/sh", "-c", "umask"], stdout=subprocess.PIPE, check=False)
    return int(asked.stdout, 8)


def _sources() -> dict[str, int]:
    """Return where each module is from that has been imported, and when that was written."""
    specs = [getattr(module, "__spec__", None) for module in list(sys.modules.values())]
    return {
        spec.origin: _written(spec.origin) for spec in specs if spec is not None and spec.origin
    }


def _written(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:  # built in, or gone
        return 0


if __name__ == "__main__":
    main()
