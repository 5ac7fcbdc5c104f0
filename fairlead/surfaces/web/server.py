"""Serving an application, in the foreground until a signal.

Belongs here: sockets and signals. Does not: the application (`app`).
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

#: Where `fairlead serve` listens by default: for this machine's own programs.
HOST: Final = "127.0.0.1"
#: Who comes beyond so many connections gets status 503; one that asks for nothing more ends.
CONNECTIONS: Final = 200
KEEP_ALIVE_S: Final = 5
_GRACE_S: Final = 10

_log = logging.getLogger(__name__)


def serve(app: ASGIApp, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM; requests under way are answered first, for some seconds.

    Raises
    ------
    ConfigurationError
        The address is taken, or none of this machine.
    """
    # uvicorn raises a signal again when it has stopped: Ctrl-C then is an end as any other.
    with listening(host, port) as listener, contextlib.suppress(KeyboardInterrupt):
        _log.info("serving at %s", address_of(listener))
        uvicorn_server(app).run([listener])


def uvicorn_server(app: ASGIApp) -> uvicorn.Server:
    """Return a server of an application, within its limits."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            log_config=None,  # logging is the process's own affair
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


def address_of(listener: socket.socket) -> str:
    """Return where somebody listens, as browsers write it."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Listen before anything is served: a request meanwhile waits.

    Raises
    ------
    ConfigurationError
        The address is taken, or none of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(f"cannot serve at {host}:{port}: {error.strerror}") from error
    with listener:
        yield listener
