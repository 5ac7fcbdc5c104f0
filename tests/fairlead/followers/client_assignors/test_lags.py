"""A leader's assignor fetches lags, but waits for them only for a limited time."""

import logging
import threading
from collections.abc import Collection

import pytest

from fairlead.followers.client_assignors.lags import Lags, lags_in_time
from tests.waiting import PATIENCE_S


def test_partitions_without_a_known_lag_have_none() -> None:
    """A partition without a fetched lag is assigned as if its lag were 0."""

    def fetch(topics: Collection[str]) -> Lags:
        assert set(topics) == {"t", "u"}
        return {("t", 0): 7, ("t", 1): 3, ("u", 0): 5}

    assert lags_in_time(fetch, {"t": 3, "u": 1}) == {"t": [7, 3, 0], "u": [5]}


def test_silent_or_failing_broker_delays_no_rebalance(caplog: pytest.LogCaptureFixture) -> None:
    """Partitions are assigned as if lag were 0, and the log has the reason."""
    answering = threading.Event()

    def silent(_: Collection[str]) -> Lags:
        answering.wait(PATIENCE_S)
        return {}

    def failing(_: Collection[str]) -> Lags:
        raise ConnectionError("no broker")

    with caplog.at_level(logging.WARNING):
        # clock: the silent broker never answers
        assert lags_in_time(silent, {"t": 2}, timeout_s=0.05) == {"t": [0, 0]}
        assert lags_in_time(failing, {"t": 2}) == {"t": [0, 0]}
    answering.set()
    assert "Lags are unknown (no answer within" in caplog.text
    assert "no broker" in caplog.text
