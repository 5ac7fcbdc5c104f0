"""The HTTP server, which serves an application in the foreground until a signal ends it.

Belongs here: sockets and signals. Belongs elsewhere: the application (`app`).
"""

import contextlib
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from fairlead.errors import ConfigurationError

#: Default address of `fairlead serve`: only this machine reaches it.
HOST: Final = "127.0.0.1"
#: Maximum number of connections (further ones get status 503), and seconds until an idle connection
#: is closed.
CONNECTIONS: Final = 200
KEEP_ALIVE_S: Final = 5
_GRACE_S: Final = 10

_log = logging.getLogger(__name__)


def serve(app: ASGIApp, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM, then give requests in progress some seconds to finish.

    Raises
    ------
    ConfigurationError
        The address is in use, or not an address of this machine.
    """
    # After uvicorn has stopped because of a signal, it raises the signal again. Ctrl-C is no error.
    with listening(host, port) as listener, contextlib.suppress(KeyboardInterrupt):
        _log.info("serving at %s", address_of(listener))
        uvicorn_server(app).run([listener])


def uvicorn_server(app: ASGIApp) -> uvicorn.Server:
    """Return a uvicorn server for an application, with the limits above."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            log_config=None,  # the command configures logging
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


def address_of(listener: socket.socket) -> str:
    """Return the address of a listening socket, as browsers write it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen at an address during the block. Connections wait until a server accepts them.

    Raises
    ------
    ConfigurationError
        The address is in use, or not an address of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(f"cannot serve at {host}:{port}: {error.strerror}") from error
    with listener:
        yield listener
