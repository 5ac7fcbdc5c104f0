"""Many simultaneous requests do not block monitoring."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from urllib.request import urlopen

import pytest

from fairlead.settings import Settings
from fairlead.store.engine import create_store_engine
from fairlead.surfaces.web import build_app
from fairlead.surfaces.web.app import PAGES_AT_ONCE
from fairlead.surfaces.web.server import CONNECTIONS
from tests.fairlead.surfaces.web.test_app import get
from tests.serving import serving
from tests.waiting import PATIENCE_S

REVIEWS = 60


class Reviews:
    """Replacement for `review_page` that returns once the test allows it."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.begun = threading.Semaphore(0)
        self.made = 0
        self.at_once = 0
        self._under_way = 0
        self._lock = threading.Lock()

    def __call__(self, _engine: object, group: str, version: int, **_: object) -> str:
        """Return a review once `done` is set."""
        with self._lock:
            self.made += 1
            self._under_way += 1
            self.at_once = max(self.at_once, self._under_way)
        self.begun.release()
        assert self.done.wait(PATIENCE_S)
        with self._lock:
            self._under_way -= 1
        return f"{group} {version}"


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reviews]:
    """Replace `review_page` in the application; return the replacement."""
    reviews = Reviews()
    monkeypatch.setattr("fairlead.surfaces.web.app.review_page", reviews)
    yield reviews
    reviews.done.set()


@pytest.fixture
def served() -> Iterator[str]:
    """Return the address of an application without a database."""
    engine = create_store_engine("postgresql://nobody@127.0.0.1:1/nothing")
    with serving(build_app(engine, Settings())) as address:
        yield address
    engine.dispose()


def ask(served: str, number: int) -> tuple[int, str, str]:
    """Request a review."""
    return get(f"{served}/review?group=orders&version={number}")


def test_slow_reviews_do_not_delay_health_and_metrics(served: str, reviews: Reviews) -> None:
    """While 60 slow reviews are rendered two at a time, `/health` and `/metrics` answer."""
    with ThreadPoolExecutor(REVIEWS) as people:
        calls = [people.submit(ask, served, number) for number in range(1, REVIEWS + 1)]
        for _ in range(PAGES_AT_ONCE):
            assert reviews.begun.acquire(timeout=PATIENCE_S)
        with urlopen(f"{served}/health", timeout=PATIENCE_S) as answer:  # noqa: S310 - our own address
            assert answer.read() == b"ok\n"
        with urlopen(f"{served}/metrics", timeout=PATIENCE_S) as answer:  # noqa: S310 - the same
            assert b"fairlead_" in answer.read()
        assert not any(review.done() for review in calls)
        reviews.done.set()
        texts = {review.result(PATIENCE_S)[2] for review in calls}
    assert texts == {f"orders {number}" for number in range(1, REVIEWS + 1)}
    assert reviews.at_once == PAGES_AT_ONCE


def test_requests_beyond_the_connections_are_refused(served: str, reviews: Reviews) -> None:
    """Requests beyond the maximum number of connections get 503; the others are answered."""
    with ThreadPoolExecutor(CONNECTIONS) as people:
        calls = [people.submit(ask, served, number) for number in range(1, CONNECTIONS + 1)]
        refused = next(review for review in as_completed(calls, timeout=PATIENCE_S)).result()
        assert refused[0] == 503
        reviews.done.set()
        statuses = {review.result(PATIENCE_S)[0] for review in calls}
    assert statuses == {200, 503}
