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
import contextlib
import gc
import importlib
import io
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, Final, Self, TextIO

#: Imported before the first fork: what a planning run has imported at its end.
MODULES: Final = (
    "dagster._cli.api",
    "dagster_postgres",
    f"{__package__}.definitions",  # in a wheel this package is another one's
    f"{__package__}.shell",
    "pyspark.sql.connect.session",
    "pandas",
)
_SOCKET: Final = "runs.sock"
#: Bounds what hangs: an answer is a fork away.
_ANSWER_S: Final = 30.0
_REFUSED: Final = "not run: "


def socket_path(dagster_home: str | Path) -> Path:
    """Return where the server of a Dagster home listens."""
    return Path(dagster_home) / _SOCKET


@dataclass(frozen=True)
class Forked:
    """A process that the server has forked for somebody.

    Parameters
    ----------
    pid
        Its process.
    _told
        Where the server tells how it ended.
    """

    pid: int
    _told: TextIO

    @classmethod
    def ask(cls, dagster_home: str | Path, function: str, words: Sequence[str]) -> Self | None:
        """Have a command run, `module:function`, with these words, here and in this environment.

        Its output goes where this process' goes.

        Returns
        -------
        None: no server runs there that could, or it is another interpreter's or about to renew
        itself; nothing was started.

        Raises
        ------
        OSError
            It does not answer: it may have started something, which must not be started twice.
        """
        question = {
            "interpreter": sys.executable,
            "function": function,
            "words": list(words),
            "environment": dict(os.environ),
            "folder": str(Path.cwd()),
        }
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(_ANSWER_S)
            try:
                asked.connect(str(socket_path(dagster_home)))
            except OSError:  # none, or its path is too long for a socket
                return None
            socket.send_fds(asked, [b"\n"], [0, 1, 2])
            asked.sendall(json.dumps(question).encode() + b"\n")
            told = asked.makefile()
            answer = told.readline()
            if answer.startswith(_REFUSED):
                return None
            if not answer:
                raise OSError(f"the fork server of {dagster_home} is gone before it answered")
            asked.settimeout(None)
            return cls(int(answer), told)

    def wait(self) -> int:
        """Wait until it has ended; return its exit code, negative: by a signal, as subprocess does.

        A server that is killed meanwhile cannot tell: -9, once the process has ended.
        """
        with self._told:
            return int(self._told.readline() or -signal.SIGKILL)


def run(function: str, words: Sequence[str]) -> int | None:
    """Run a command in a forked process as if it ran in this one; return its exit code.

    Signals that end this process are passed on. None: nobody forks here (`Forked.ask`).
    """
    passed_on = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)  # until there is whom to pass them on to
    try:
        home = os.environ.get("DAGSTER_HOME")
        forked = Forked.ask(home, function, words) if home else None
        if forked is None:
            return None
        for number in passed_on:
            signal.signal(number, lambda passed, _: os.kill(forked.pid, passed))
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

    Raises
    ------
    OSError
        Another one listens there, or the path is too long for a socket.
    """

    def __init__(self, dagster_home: Path) -> None:
        self._path = socket_path(dagster_home)
        self._sources = _sources()
        self._context = get_context("fork")
        self._running: dict[int, tuple[ForkProcess, socket.socket]] = {}
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

    def serve(self) -> None:
        """Fork for whoever asks, until the sources have changed and nothing runs any more."""
        fresh = True
        try:
            while fresh or self._running:
                for ready in connection.wait([self._listener, *self._running]):
                    if isinstance(ready, int):
                        self._ended(ready)
                    else:
                        fresh = fresh and self._as_imported()
                        self._accept(fresh=fresh)
        finally:
            self._listener.close()
            self._path.unlink(missing_ok=True)

    def _as_imported(self) -> bool:
        return all(_written(path) == at for path, at in self._sources.items())

    def _accept(self, *, fresh: bool) -> None:
        asked, _ = self._listener.accept()
        try:
            asked.settimeout(_ANSWER_S)
            self._answer(asked, fresh=fresh)
        except (OSError, ValueError, KeyError, TypeError) as error:
            with contextlib.suppress(OSError), asked:
                asked.sendall(f"{_REFUSED}{error}\n".encode())

    def _answer(self, asked: socket.socket, *, fresh: bool) -> None:
        _, handles, _, _ = socket.recv_fds(asked, 1, 3)
        try:
            with asked.makefile() as told:
                question = json.loads(told.readline())
            if question["interpreter"] != sys.executable:
                raise ValueError("this is another interpreter")
            if not fresh:
                raise ValueError("the sources have changed")
            process = self._context.Process(target=self._child, args=(question, handles))
            process.start()
        finally:
            for handle in handles:
                os.close(handle)
        self._running[process.sentinel] = (process, asked)
        asked.sendall(f"{process.pid}\n".encode())

    def _ended(self, sentinel: int) -> None:
        process, asked = self._running.pop(sentinel)
        process.join()
        with contextlib.suppress(OSError), asked:  # whoever asked may be gone
            asked.sendall(f"{process.exitcode}\n".encode())
        process.close()

    def _child(self, question: Mapping[str, Any], handles: Sequence[int]) -> None:
        """Become what was asked for."""
        self._listener.close()
        for _, asked in self._running.values():
            asked.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` ignores it
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True)
        os.chdir(question["folder"])
        os.environ.clear()
        os.environ.update(question["environment"])
        time.tzset()
        sys.argv = [question["function"], *question["words"]]
        module, _, function = question["function"].partition(":")
        sys.exit(getattr(importlib.import_module(module), function)())


def main() -> None:
    """Serve in `DAGSTER_HOME`, with what is named imported first; ready once there is a socket."""
    this = f"{__package__}.forkserver"
    parser = argparse.ArgumentParser(
        prog=f"python -m {this}", description="Fork a process for each run."
    )
    parser.add_argument(
        "modules", nargs="*", default=MODULES, metavar="MODULE", help="to import, else what runs do"
    )
    modules = parser.parse_args().modules
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        parser.error("DAGSTER_HOME is not set: it says whose runs are forked")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # children do not write into pages that are shared
    try:
        ForkServer(Path(home)).serve()
    except OSError as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    except KeyboardInterrupt:
        return
    os.execv(sys.executable, [sys.executable, "-m", this, *modules])  # noqa: S606 - itself


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
