"""Nobody who asks for much, sends slowly or does not read keeps others from being answered."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from starlette.types import Receive, Scope, Send

from fairlead.settings import Settings
from fairlead.store.engine import create_store_engine
from fairlead.surfaces.web import build_app
from fairlead.surfaces.web.pool import THREADS, WAITING
from fairlead.surfaces.web.server import serving
from tests.fairlead.surfaces.web.test_app import get

REVIEWS = 60


class Reviews:
    """Stands in for what makes reviews, which takes as long as a test likes."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.begun = threading.Semaphore(0)
        self.made = 0
        self.at_once = 0
        self._under_way = 0
        self._lock = threading.Lock()

    def __call__(self, _engine: object, group: str, version: int, **_: object) -> str:
        """Make a review once the test lets it."""
        with self._lock:
            self.made += 1
            self._under_way += 1
            self.at_once = max(self.at_once, self._under_way)
        self.begun.release()
        assert self.done.wait(120)
        with self._lock:
            self._under_way -= 1
        return f"{group} {version}"


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reviews]:
    """Return what makes reviews."""
    reviews = Reviews()
    monkeypatch.setattr("fairlead.surfaces.web.app.review_page", reviews)
    yield reviews
    reviews.done.set()


@pytest.fixture
def served() -> Iterator[str]:
    """Return the address of an application whose database is away."""
    engine = create_store_engine("postgresql://nobody@127.0.0.1:1/nothing")
    with serving(build_app(engine, Settings())) as address:
        yield address
    engine.dispose()


def ask(served: str, number: int) -> tuple[int, str, str]:
    """Ask for a review."""
    return get(f"{served}/review?group=orders&version={number}")


def test_reviews_under_way_do_not_keep_health_and_metrics(served: str, reviews: Reviews) -> None:
    """Sixty at once are made a few at a time; what a monitor asks is answered meanwhile."""
    with ThreadPoolExecutor(REVIEWS) as people:
        asked = [people.submit(ask, served, number) for number in range(1, REVIEWS + 1)]
        for _ in range(THREADS):
            assert reviews.begun.acquire(timeout=120)
        with urlopen(f"{served}/health", timeout=20) as answer:  # noqa: S310 - our own address
            assert answer.read() == b"ok\n"
        with urlopen(f"{served}/metrics", timeout=20) as answer:  # noqa: S310 - the same
            assert b"fairlead_" in answer.read()
        assert not any(review.done() for review in asked)
        reviews.done.set()
        texts = {review.result(120)[2] for review in asked}
    assert texts == {f"orders {number}" for number in range(1, REVIEWS + 1)}
    assert reviews.at_once == THREADS


def test_a_review_is_made_once_for_all_who_ask(served: str, reviews: Reviews) -> None:
    """At the same time, and right after: a page that everybody opens costs what one costs."""
    with ThreadPoolExecutor(20) as people:
        asked = [people.submit(ask, served, 1) for _ in range(20)]
        assert reviews.begun.acquire(timeout=120)
        reviews.done.set()
        assert {review.result(120)[2] for review in asked} == {"orders 1"}
    assert ask(served, 1)[2] == "orders 1"
    assert reviews.made == 1


def test_more_than_can_wait_are_asked_to_come_again(served: str, reviews: Reviews) -> None:
    """The others are answered."""
    with ThreadPoolExecutor(WAITING + 1) as people:
        asked = [people.submit(ask, served, number) for number in range(1, WAITING + 2)]
        refused = next(review for review in _ended(asked))
        assert refused[0] == 503
        reviews.done.set()
        statuses = [review.result(120)[0] for review in asked]
    assert sorted(statuses) == [200] * WAITING + [503]


def _ended(asked: list[Future[tuple[int, str, str]]]) -> Iterator[tuple[int, str, str]]:
    for review in as_completed(asked, timeout=120):
        yield review.result()


@pytest.mark.parametrize("begun", [b"", b"GET /health HTT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
@pytest.mark.parametrize("before", [b"", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_a_request_that_does_not_come_ends_its_connection(
    served: str, before: bytes, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opens many and sends a letter now and then holds none of them for long."""
    monkeypatch.setattr("fairlead.surfaces.web.patience.REQUEST_S", 0.5)
    place = urlsplit(served)
    with socket.create_connection((place.hostname or "", place.port or 0), 30) as connection:
        connection.sendall(before)
        if before:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(begun)
        with suppress(ConnectionResetError):
            while connection.recv(4096):
                pass


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection ends; it is not held in memory for ever."""
    monkeypatch.setattr("fairlead.surfaces.web.patience.ANSWER_S", 0.5)
    ended = threading.Event()
    chunk = {"type": "http.response.body", "body": bytes(2**20), "more_body": True}

    async def endless(_scope: Scope, _receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send(chunk)
        finally:
            ended.set()

    with serving(endless) as address:
        place = urlsplit(address)
        with socket.create_connection((place.hostname or "", place.port or 0), 30) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert ended.wait(60)


def test_an_answer_that_does_not_come_says_so(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A review that hangs is not waited for by those who ask."""
    monkeypatch.setattr("fairlead.surfaces.web.patience.ANSWER_S", 0.5)
    hanging = threading.Event()
    monkeypatch.setattr(
        "fairlead.surfaces.web.app.review_page", lambda *_, **__: str(hanging.wait(60))
    )
    try:
        assert ask(served, 1)[::2] == (503, "The answer takes too long\n")
    finally:
        hanging.set()
