"""Requests over HTTP: answers that are cut off, servers that hang, and who must not read along."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request

import pytest

from fairlead.common.http import fetch
from tests.fairlead.surfaces.web.proxies import Issuer, publishing
from tests.waiting import PATIENCE_S


@pytest.fixture
def server() -> Iterator[Issuer]:
    """Return a server on the loopback that can fail."""
    with publishing(Issuer(body=b"x" * 100)) as server:
        yield server


def ask(url: str, *, timeout_s: float = PATIENCE_S, most_bytes: int = 1000) -> tuple[int, bytes]:
    request = Request(url)  # noqa: S310 - on the loopback
    return fetch(request, timeout_s=timeout_s, most_bytes=most_bytes)


def threads_end(before: set[threading.Thread]) -> None:
    """Wait until the threads that ask have ended."""
    for thread in set(threading.enumerate()) - before:
        if "ask" in thread.name:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def test_answer_is_read_up_to_a_bound(server: Issuer) -> None:
    """The rest of a longer answer is not read."""
    assert ask(server.url) == (200, b"x" * 100)
    assert ask(server.url, most_bytes=7) == (200, b"x" * 7)


def test_answer_that_ends_too_early_is_none(server: Issuer) -> None:
    """It promised more bytes than came."""
    server.raw = b"HTTP/1.0 200 OK\r\nContent-Length: 900\r\n\r\nok"
    with pytest.raises(OSError, match="its answer ended too early"):
        ask(server.url)


def test_server_that_sends_byte_by_byte_keeps_no_thread(server: Issuer) -> None:
    """Its connection ends with the wait for it."""
    server.pieces, server.pause = 100, 0.1
    before = set(threading.enumerate())
    with pytest.raises(TimeoutError, match=r"within 0\.4 s"):
        ask(server.url, timeout_s=0.4)  # clock: its answer never ends in time
    threads_end(before)


def test_name_that_is_found_too_late_is_not_asked(
    server: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait was over before: nothing is sent, and no thread stays."""
    looked_up: Callable[..., Any] = socket.getaddrinfo
    found = threading.Event()

    def slowly(*asked: Any) -> Any:
        found.wait(PATIENCE_S)
        return looked_up(*asked)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    before = set(threading.enumerate())
    with pytest.raises(TimeoutError, match=r"within 0\.2 s"):
        ask(server.url, timeout_s=0.2)  # clock: the name is not found before
    found.set()
    threads_end(before)
    assert server.asked == 0


def test_proxy_gets_nothing_that_it_could_read(
    server: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request to this machine without TLS does not leave it, whatever HTTP_PROXY says."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with publishing(Issuer()) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        ask(server.url)
        assert (proxy.asked, server.asked) == (0, 1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/keys", "https://nowhere.invalid/keys"])
def test_server_that_is_not_there(url: str) -> None:
    """Nobody listens, or the name is none."""
    with pytest.raises(OSError, match=r"refused|not known|resolution"):
        ask(url)


def test_server_without_tls_is_not_asked_by_https(server: Issuer) -> None:
    """Nothing is sent before a certificate was checked."""
    with pytest.raises(OSError, match="SSL"):
        ask(server.url.replace("http:", "https:"))
    assert server.asked == 0
