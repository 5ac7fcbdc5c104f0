"""A connection to Postgres that fails when the server stops answering.

Belongs here: distinguishing a server that is busy with a query from a server that is hanging or
unreachable. Belongs elsewhere: time limits of queries, which the server enforces (`engine`).

If only the server process hangs, the kernel of its machine still acknowledges packets, so neither
keepalives nor `tcp_user_timeout` detect the problem.
"""

import os
import socket
import struct
import time
from collections.abc import Generator
from typing import Any, Final, TypeVar

import psycopg

_Value = TypeVar("_Value")
#: Seconds without an answer, after which the server is checked on a second connection.
_SILENCE_S: Final = 3.0
#: Postgres's SSLRequest message. The server answers it without a login and without logging it.
_SSL_REQUEST: Final = struct.pack("!ii", 8, 80877103)


class WatchedConnection(psycopg.Connection[Any]):
    """A connection whose calls fail if the server is silent and a second connection fails as well.

    Attributes
    ----------
    patience_s
        Seconds within which the server must answer on the second connection.
    """

    patience_s = 10.0

    def wait(self, gen: Generator[Any, Any, _Value], *args: Any, **kwargs: Any) -> _Value:
        """Wait for the server as psycopg does; if it is silent for long, check that it answers.

        Raises
        ------
        psycopg.OperationalError
            The server does not answer. The connection is closed.
        """
        return super().wait(self._watched(gen), *args, **kwargs)

    def _watched(self, gen: Generator[Any, Any, _Value]) -> Generator[Any, Any, _Value]:
        """Run psycopg's generator and check the server after a long silence.

        While the server is silent, psycopg resumes this generator every 0.1 s with a false value.
        """
        ready, since = None, time.monotonic()
        while True:
            try:
                awaited = gen.send(ready)
            except StopIteration as done:
                value: _Value = done.value
                return value
            ready = yield awaited
            if ready:
                since = time.monotonic()
            elif time.monotonic() - since > _SILENCE_S:
                if not self._server_answers():
                    self.close()
                    raise psycopg.OperationalError("Postgres does not answer any more")
                since = time.monotonic()

    def _server_answers(self) -> bool:
        with socket.socket(fileno=os.dup(self.fileno())) as ours:
            family, server = ours.family, ours.getpeername()
        try:
            with socket.socket(family) as other:
                other.settimeout(self.patience_s)
                other.connect(server)
                other.sendall(_SSL_REQUEST)
                other.recv(1)
        except OSError:
            return False
        return True
