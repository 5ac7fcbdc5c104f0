"""A process that has imported what runs need, and forks one for each.

`python -m orchestration.forkserver` runs it. Dagster, this code and Spark's client take seconds to
import, a fork takes none. Like multiprocessing's own fork server it has no connections that a child
could inherit half used, nor threads but those of libraries that know of forks; unlike it, it
serves processes that are not its parent: Dagster's daemon (`launcher`) and shells (`__main__`).
They go on without it. Nobody else than its user reaches it: its socket lies in `DAGSTER_HOME`,
closed to others. It is replaced by a new one once its sources have changed.

Belongs here: the server, and asking it. Does not: what is run.
"""

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
from typing import Any, Final, Self

#: Imported before the first fork: what a planning run has imported at its end.
MODULES: Final = (
    "dagster._cli.api",
    "dagster_postgres",
    "orchestration.definitions",
    "orchestration.shell",
    "pyspark.sql.connect.session",
    "pandas",
)
_SOCKET: Final = "runs.sock"
#: A server that does not answer by then is left alone; its answer is a fork away.
_ANSWER_S: Final = 5.0
_LONGEST: Final = 4 << 20


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
    _socket
        Tells how it ended.
    """

    pid: int
    _socket: socket.socket

    @classmethod
    def ask(cls, dagster_home: str | Path, function: str, words: Sequence[str]) -> Self | None:
        """Have a command run, `module:function`, with these words, here and in this environment.

        Its output goes where this process' goes.

        Returns
        -------
        None: no server runs there that could, or it is another interpreter's or about to renew
        itself; nothing was started.
        """
        question = {
            "interpreter": sys.executable,
            "function": function,
            "words": list(words),
            "environment": dict(os.environ),
            "folder": str(Path.cwd()),
        }
        asked = socket.socket(socket.AF_UNIX)
        try:
            asked.settimeout(_ANSWER_S)
            asked.connect(str(socket_path(dagster_home)))
            socket.send_fds(asked, [b"\n"], [0, 1, 2])
            asked.sendall(json.dumps(question).encode() + b"\n")
            pid = int(_line(asked))
        except (OSError, ValueError):  # none, or it says why not
            asked.close()
            return None
        asked.settimeout(None)
        return cls(pid, asked)

    def wait(self) -> int:
        """Wait until it has ended; return its exit code, negative: by a signal, as subprocess does.

        A server that is killed meanwhile cannot tell: -9, though the process may go on.
        """
        with self._socket:
            try:
                return int(_line(self._socket))
            except (OSError, ValueError):
                return -signal.SIGKILL


def run(function: str, words: Sequence[str]) -> int | None:
    """Run a command in a forked process as if it ran in this one; return its exit code.

    Signals that end this process are passed on. None: nobody forks here (`Forked.ask`).
    """
    home = os.environ.get("DAGSTER_HOME")
    forked = Forked.ask(home, function, words) if home else None
    if forked is None:
        return None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda passed, _: os.kill(forked.pid, passed))
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
                asked.sendall(f"cannot be run: {error}\n".encode())

    def _answer(self, asked: socket.socket, *, fresh: bool) -> None:
        _, handles, _, _ = socket.recv_fds(asked, 1, 3)
        try:
            question = json.loads(_line(asked))
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
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
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
    """Serve in `DAGSTER_HOME`; ready once there is a socket."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for module in MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # children do not write into pages that are shared
    with contextlib.suppress(KeyboardInterrupt):
        ForkServer(Path(os.environ["DAGSTER_HOME"])).serve()
        os.execv(sys.executable, [sys.executable, "-m", "orchestration.forkserver"])  # noqa: S606 - itself


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


def _line(asked: socket.socket) -> str:
    """Read a line."""
    read = bytearray()
    while not read.endswith(b"\n"):
        more = asked.recv(1 << 16)
        if not more or len(read) > _LONGEST:
            raise ValueError("it was cut off")
        read += more
    return read.decode()


if __name__ == "__main__":
    main()
