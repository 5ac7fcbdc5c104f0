"""Pages are made a few at a time, and what a monitor asks does not wait for them."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import pytest

from fairlead.settings import Settings
from fairlead.store.engine import create_store_engine
from fairlead.surfaces.web import build_app
from fairlead.surfaces.web.app import THREADS
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


def test_more_connections_than_the_limit_are_refused(
    reviews: Reviews, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are open are answered; whoever comes is told to come again."""
    monkeypatch.setattr("fairlead.surfaces.web.server.CONNECTIONS", THREADS + 1)
    engine = create_store_engine("postgresql://nobody@127.0.0.1:1/nothing")
    with serving(build_app(engine, Settings())) as served, ThreadPoolExecutor(THREADS) as people:
        asked = [people.submit(ask, served, number) for number in range(1, THREADS + 1)]
        for _ in range(THREADS):
            assert reviews.begun.acquire(timeout=120)
        assert ask(served, THREADS + 1)[0] == 503
        reviews.done.set()
        assert [review.result(120)[0] for review in asked] == [200] * THREADS
    engine.dispose()
