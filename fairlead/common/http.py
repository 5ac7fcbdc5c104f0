"""Requests over HTTP to an address that the settings name.

Belongs here: no redirects, answers of a bounded size, and an end whatever the other side does. Does
not: what is asked, and what an answer means.
"""

import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.request
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any


class _Remembering(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens connections, and remembers them: whoever gives up ends them."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: list[http.client.HTTPConnection] = []
        self._over = False

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Ask in the clear."""
        return self.do_open(partial(self._made, http.client.HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Ask by TLS whom the machine's authorities vouch for."""
        context = ssl.create_default_context()
        return self.do_open(partial(self._made, http.client.HTTPSConnection), req, context=context)

    def _made(self, kind: Any, host: str, **given: Any) -> Any:
        connection = kind(host, **given)
        connect = connection.connect

        def connect_in_time() -> None:
            connect()
            if self._over:  # its name was looked up, or TLS agreed on, for too long
                connection.close()
                raise TimeoutError

        connection.connect = connect_in_time
        self._opened.append(connection)
        return connection

    def end(self) -> None:
        """End what goes on: who answers byte by byte would keep its thread for hours."""
        self._over = True
        for connection in self._opened:
            with contextlib.suppress(OSError, AttributeError):  # not connected yet, or not any more
                connection.sock.shutdown(socket.SHUT_RDWR)


def fetch(
    request: urllib.request.Request, *, timeout_s: float, most_bytes: int
) -> tuple[int, bytes]:
    """Return an answer's status, that of a redirect among them, and its body.

    Parameters
    ----------
    timeout_s
        For all of it, looking up the name included.
    most_bytes
        Of a longer body no more is read.

    Raises
    ------
    OSError, ValueError
        There is no answer. The message holds no part of the address.
    """
    answer: SimpleQueue[tuple[int, bytes] | Exception] = SimpleQueue()
    handler = _Remembering()

    def ask() -> None:
        try:
            answer.put(_read(request, handler, timeout_s, most_bytes))
        except http.client.HTTPException:  # its message may be a part of the address
            answer.put(ValueError("its answer is no HTTP"))
        except Exception as error:  # noqa: BLE001 - raised below
            answer.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        came = answer.get(timeout=timeout_s)
    except Empty:
        handler.end()
        raise _late(timeout_s) from None
    if isinstance(came, Exception):
        raise came
    return came


def _read(
    request: urllib.request.Request, handler: _Remembering, timeout_s: float, most_bytes: int
) -> tuple[int, bytes]:
    opener = urllib.request.OpenerDirector()  # without what follows redirects
    # Without TLS only this machine is asked: a proxy would read along, and could answer.
    proxies = {kind: at for kind, at in urllib.request.getproxies().items() if kind == "https"}
    opener.add_handler(urllib.request.ProxyHandler(proxies))
    opener.add_handler(handler)
    until = time.monotonic() + timeout_s
    with opener.open(request, timeout=2 * timeout_s) as answer:  # whoever waits gives up before
        body = b""
        while len(body) < most_bytes and (piece := answer.read1(most_bytes - len(body))):
            body += piece
            if time.monotonic() > until:  # what came so far is no answer
                raise _late(timeout_s)
        if len(body) < most_bytes and answer.length:
            raise ConnectionResetError("its answer ended too early")
    return answer.status, body


def _late(timeout_s: float) -> TimeoutError:
    return TimeoutError(f"it did not answer within {timeout_s:g} s")
