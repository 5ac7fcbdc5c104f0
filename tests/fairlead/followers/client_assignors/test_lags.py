"""A leader fetches lags while members join, and waits for them for a limited time."""

import logging
import threading
from collections.abc import Collection

import pytest

from fairlead.followers.client_assignors.lags import LagReader, Lags
from fairlead.followers.core.clock import Clock
from tests.waiting import PATIENCE_S, eventually

KNOWN = {("t", 0): 7, ("t", 1): 3, ("u", 0): 5}


class Broker:
    """A broker that answers only while the test has set `answering`."""

    def __init__(self) -> None:
        self.requests: list[set[str]] = []
        self.answering = threading.Event()
        self.answering.set()

    def fetch(self, topics: Collection[str]) -> Lags:
        """Return the known lags of the topics."""
        self.requests.append(set(topics))
        self.answering.wait(PATIENCE_S)
        return {where: lag for where, lag in KNOWN.items() if where[0] in topics}


def test_lags_are_fetched_while_the_members_join() -> None:
    """Lags are fetched once as the client joins, so the assignment sends no request."""
    broker = Broker()
    reader = LagReader(broker.fetch, timeout_s=PATIENCE_S, clock=Clock(lambda: 0.0))
    reader.joining(["t"])
    reader.joining(["t"])
    assert reader.current({"t": 3}) == {"t": [7, 3, 0]}
    assert broker.requests == [{"t"}]


def test_topics_of_other_members_are_fetched_in_advance() -> None:
    """Only the first assignment has to fetch these topics' lags."""
    broker = Broker()
    reader = LagReader(broker.fetch, timeout_s=PATIENCE_S, clock=Clock(lambda: 0.0))
    for _ in range(2):
        reader.joining(["t"])
        assert reader.current({"t": 2, "u": 1}) == {"t": [7, 3], "u": [5]}
        reader.settled()
    assert broker.requests == [{"t"}, {"t", "u"}, {"t", "u"}]


def test_member_that_never_leads_fetches_lags_once() -> None:
    """The member fetches lags when it joins for the first time."""
    broker = Broker()
    reader = LagReader(broker.fetch, timeout_s=PATIENCE_S, clock=Clock(lambda: 0.0))
    for _ in range(3):
        reader.joining(["t"])
        reader.settled()
    eventually(lambda: broker.requests == [{"t"}], "it asked as it joined for the first time")


def test_silent_broker_delays_no_rebalance(caplog: pytest.LogCaptureFixture) -> None:
    """After the timeout, partitions are assigned as if lag were 0, and the log has the reason."""
    broker = Broker()
    broker.answering.clear()
    reader = LagReader(broker.fetch, timeout_s=0.05)  # clock: no answer comes
    reader.joining(["t"])
    with caplog.at_level(logging.WARNING):
        assert reader.current({"t": 2}) == {"t": [0, 0]}
    broker.answering.set()
    assert "Lags are unknown (not within" in caplog.text


def test_failed_or_old_lags_are_fetched_again() -> None:
    """A member that joins again fetches lags again if the last fetch failed or is too old."""
    time, answers = [0.0], iter([None, 7, 9])

    def fetch(_: Collection[str]) -> Lags:
        answer = next(answers)
        if answer is None:
            raise ConnectionError("no broker")
        return {("t", 0): answer}

    reader = LagReader(fetch, timeout_s=PATIENCE_S, clock=Clock(lambda: time[0]))
    reader.joining(["t"])
    eventually(lambda: not reader._is_fresh(), "it has failed")  # noqa: SLF001 - on a thread
    reader.joining(["t"])
    assert reader.current({"t": 1}) == {"t": [7]}
    time[0] = 11.0
    reader.joining(["t"])
    assert reader.current({"t": 1}) == {"t": [9]}
