"""A connection to Postgres that notices when the server stops answering.

Belongs here: distinguishing a server that works on a query from one that is frozen or cut off.
Does not: time limits of queries, which the server enforces (`engine`).

The kernel of a frozen server's machine still acknowledges packets, so neither keepalives nor
`tcp_user_timeout` notice it.
"""

import os
import socket
import struct
import time
from collections.abc import Generator
from typing import Any, Final, TypeVar

import psycopg

_Value = TypeVar("_Value")
#: Seconds without an answer before the server is checked on a second connection.
_SILENCE_S: Final = 3.0
#: Asks whether the server supports TLS; it answers before any login and logs nothing.
_SSL_REQUEST: Final = struct.pack("!ii", 8, 80877103)


class WatchedConnection(psycopg.Connection[Any]):
    """A connection whose calls fail if the server does not answer on a second connection.

    Attributes
    ----------
    patience_s
        Seconds within which the server must answer on the second connection.
    """

    patience_s = 10.0

    def wait(self, gen: Generator[Any, Any, _Value], *args: Any, **kwargs: Any) -> _Value:
        """Wait for the server like psycopg, but check that it answers.

        Raises
        ------
        psycopg.OperationalError
            The server does not answer. The connection is closed.
        """
        return super().wait(self._watched(gen), *args, **kwargs)

    def _watched(self, gen: Generator[Any, Any, _Value]) -> Generator[Any, Any, _Value]:
        """Run psycopg's generator; psycopg reports silence every 0.1 s."""
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
                    raise psycopg.OperationalError("the server does not answer any more")
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
