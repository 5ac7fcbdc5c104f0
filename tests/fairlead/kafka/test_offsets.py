"""Reading log offsets of missing partitions, and of partitions without a leader."""

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from fairlead.domain.groups import LogOffsets
from fairlead.kafka.offsets import log_offsets


def answered(offset: int) -> "Future[Any]":
    """Return a completed future with an offset."""
    future: Future[Any] = Future()
    future.set_result(SimpleNamespace(offset=offset))
    return future


def refused(code: int) -> "Future[Any]":
    """Return a completed future with an error."""
    future: Future[Any] = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    return future


def read(counts: dict[str, int], answer: Callable[[TopicPartition], "Future[Any]"]) -> LogOffsets:
    """Return log offsets from `answer`, after a request for all partitions at once has failed."""

    class Reader:
        def offsets_for_times(self, *_: Any, **__: Any) -> None:
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))

    class Admin:
        def list_offsets(self, specs: Any, **_: Any) -> Any:
            return {place: answer(place) for place in specs}

    admin: Any = Admin()
    reader: Any = Reader()
    log, _ = log_offsets(admin, reader, counts, {}, 1.0)
    return log


def test_partition_without_a_leader_is_unreadable() -> None:
    """A partition with the offset -1001 (unknown) is unreadable; no lag is computed from it."""
    log = read({"orders": 2}, lambda place: answered(-1001 if place.partition else 7))
    assert (log.begin.tolist(), log.end.tolist()) == ([7, -1], [7, -1])
    assert log.unreadable == {"orders": "partition 1: its leader does not answer"}


def test_topic_without_its_last_partitions_is_shorter() -> None:
    """Missing partitions at a topic's end are left out; missing ones in between get offset -1."""
    counts = {"empty": 0, "gap": 3, "gone": 2, "new log": 4, "whole": 1}
    left = {"gap": {0, 2}, "new log": {0, 1}, "whole": {0}}

    def answer(place: TopicPartition) -> "Future[Any]":
        if place.partition in left.get(place.topic, ()):
            return answered(7)
        return refused(KafkaError.UNKNOWN_TOPIC_OR_PART)

    log = read(counts, answer)
    assert log.counts == {"empty": 0, "gap": 3, "new log": 2, "whole": 1}
    ends = {
        topic: log.end[first : first + count].tolist()
        for topic, (first, count) in ((name, log.place(name)) for name in counts)
    }
    assert ends == {"empty": [], "gap": [7, -1, 7], "gone": [], "new log": [7, 7], "whole": [7]}
    assert log.unreadable == {}
