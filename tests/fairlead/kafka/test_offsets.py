"""Offsets of partitions whose leader has died: librdkafka tells -1001, and no error."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from fairlead.kafka.offsets import log_offsets
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings


def answered(offset: int) -> "Future[Any]":
    """Return what tells an offset."""
    future: Future[Any] = Future()
    future.set_result(SimpleNamespace(offset=offset))
    return future


def test_partition_whose_leader_is_gone_is_unreadable_for_now() -> None:
    """What is not known is no offset: lag would be made of it."""

    class Reader:
        def offsets_for_times(self, *_: Any, **__: Any) -> None:
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))

    class Admin:
        def list_offsets(self, asked: Any, **_: Any) -> Any:
            return {place: answered(-1001 if place.partition else 7) for place in asked}

    admin: Any = Admin()
    reader: Any = Reader()
    log, _ = log_offsets(admin, reader, {"orders": 2}, {}, 1.0)
    assert (log.begin.tolist(), log.end.tolist()) == ([7, -1], [7, -1])
    assert log.unreadable == {"orders": "partition 1: its leader does not answer"}


def test_nothing_is_held_up_where_nobody_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that is gone is no transaction that somebody leaves open."""
    monkeypatch.setattr("fairlead.kafka.plan_topic._COMMITTED_S", 0.0)
    topic = PlanTopic(KafkaSettings())
    for offset, held_up in ((-1001, None), (3, 3), (5, None)):
        monkeypatch.setattr(
            topic, "_ask", lambda *_, offset=offset, **__: answered(offset).result()
        )
        assert topic.held_up(0, 4) == held_up
