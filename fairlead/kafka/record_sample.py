"""Sampling the records of a topic with a consumer that fetches small batches.

A sample consists of runs: short ranges of consecutive offsets. Belongs here: the part of the log to
sample, reading runs, and limits on reading. Belongs elsewhere: choosing runs
(`fairlead.domain.record_sample`).
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import pyarrow as pa
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from fairlead.common.librdkafka import kafka_error
from fairlead.domain.record_sample import CELLS, Int64, LogWindow, RecordSample, Runs, plan_runs
from fairlead.errors import KafkaUnavailableError, TopicError
from fairlead.kafka.reachability import require_broker
from fairlead.kafka.refusals import raise_if_refused
from fairlead.kafka.requests import ABOUT_A_GROUP, MISSING
from fairlead.kafka.rights import remedy
from fairlead.settings import KafkaSettings

#: Default number of records to sample.
RECORDS: Final = 100_000
#: Reading stops after this many bytes from brokers. The documented limit is 100 MB. This limit is
#: lower, because librdkafka updates its count of bytes only every 0.1 s.
MOST_BYTES: Final = 80_000_000
#: Reading stops after this many seconds.
MOST_S: Final = 60.0
#: Number of runs of consecutive records. More runs spread a sample more evenly, but each needs a
#: fetch.
_RUNS: Final = 600
_SETTINGS: Final = {
    "group.id": "fairlead",  # librdkafka requires a group id; the group is not joined
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "statistics.interval.ms": 100,
    # Fetch little, since runs are short. A batch above these limits is still fetched as a whole.
    "fetch.message.max.bytes": 65_536,
    "fetch.max.bytes": 2**20,
    "fetch.wait.max.ms": 10,
    # Do not prefetch: fetch only if no record is queued, which is checked every 20 ms.
    "queued.min.messages": 1,
    "fetch.queue.backoff.ms": 20,
}
#: Seconds to wait for a message before the limits are checked again.
_WAIT_S: Final = 0.1
#: Seconds after which librdkafka has updated its count of bytes.
_COUNTED_S: Final = 0.2


@contextmanager
def open_log(settings: KafkaSettings, topic: str) -> Iterator["TopicLog"]:
    """Open a topic's log for sampling, without joining a group or committing offsets.

    Raises
    ------
    TopicError
        The topic does not exist, or the user has no right to read the topic.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    log = TopicLog(settings, topic)
    try:
        require_broker(settings)
        yield log
    except KafkaUnavailableError as error:
        raise_if_refused(error, settings)
    except KafkaException as error:
        cause = kafka_error(error)
        if cause.code() in MISSING | {KafkaError.TOPIC_EXCEPTION}:  # TOPIC_EXCEPTION: invalid name
            raise TopicError(f"Topic {topic} does not exist") from error
        if cause.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            how = remedy("topic", topic, ["DESCRIBE", "READ"])
            raise TopicError(f"Topic {topic}: no right to read it. {how}") from error
        raise_if_refused(KafkaUnavailableError(f"Kafka does not answer: {cause.str()}"), settings)
    finally:
        log.close()


class TopicLog:
    """Reads the log of a topic. `open_log` replaces Kafka's errors with errors of Fairlead."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._topic, self._timeout_s, self._bytes = topic, settings.request_timeout_s, 0
        self._consumer = Consumer(settings.librdkafka(**_SETTINGS, stats_cb=self._count_bytes))

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _count_bytes(self, statistics: str) -> None:
        self._bytes = json.loads(statistics)["rx_bytes"]

    def window(self, seconds: float) -> LogWindow:
        """Return the part of the log that was written in the last `seconds`.

        In each partition, the part ends before the first record of an open transaction.

        Raises
        ------
        TopicError
            No record was written in that time.
        """
        about = self._consumer.list_topics(self._topic, timeout=self._timeout_s)
        if error := about.topics[self._topic].error:
            raise KafkaException(error)
        count = len(about.topics[self._topic].partitions)
        since = self._offsets(count, int((time.time() - seconds) * 1_000))
        end = self._offsets(count, OFFSET_END)
        begin = np.where(since < 0, end, np.minimum(since, end))  # -1: no record since then
        if not (end - begin).any():
            raise TopicError(
                f"Topic {self._topic}: no record was written in the last {seconds / 60:g} minutes. "
                "Set a longer time with --minutes"
            )
        return LogWindow(self._topic, begin, end, seconds)

    def _offsets(self, count: int, at: int) -> Int64:
        request = [TopicPartition(self._topic, number, at) for number in range(count)]
        answers = self._consumer.offsets_for_times(request, timeout=self._timeout_s)
        for answer in answers:
            if answer.error is not None:
                raise KafkaException(answer.error)
        return np.array([answer.offset for answer in answers])

    def sample(self, window: LogWindow, records: int = RECORDS, seed: int = 0) -> RecordSample:
        """Read records of a window, spread evenly over time and partitions.

        Parameters
        ----------
        records
            Approximate number of records to read.
        seed
            Seed of the random positions.
        """
        runs = plan_runs(window, records, _RUNS, seed=seed)
        began, before = time.monotonic(), self._bytes
        run_of, keys = list[int](), list[bytes | None]()
        # A turn reads one run of consecutive records from each partition. `complete`: number of
        # records in complete turns.
        turns, complete = 0, 0

        def over() -> bool:
            return self._bytes - before > MOST_BYTES or time.monotonic() - began > MOST_S

        for turn, (begin, stop) in enumerate(zip(*runs, strict=True)):
            for partition, key in self._read(begin, stop, over):
                run_of.append(turn * len(begin) + partition)
                keys.append(key)
            if over():
                break
            turns, complete = turn + 1, len(keys)
        self._consumer.unassign()
        self._consumer.poll(_COUNTED_S)
        return RecordSample(
            window,
            Runs(runs.begin[:turns], runs.stop[:turns]),
            pa.table([run_of[:complete], keys[:complete], [1] * complete], schema=CELLS),
            bytes=self._bytes - before,
            seconds=time.monotonic() - began,
            stopped=turns < len(runs.begin),
        )

    def _read(
        self, begin: Int64, stop: Int64, over: Callable[[], bool]
    ) -> Iterator[tuple[int, bytes | None]]:
        """Read one run per partition; stop if `over()`. Yield each record's partition and key."""
        unfinished = {number: int(stop[number]) for number in np.flatnonzero(stop > begin).tolist()}
        self._consumer.assign(
            [TopicPartition(self._topic, number, int(begin[number])) for number in unfinished]
        )
        while unfinished and not over():
            message = self._consumer.poll(_WAIT_S)
            if message is None:
                continue
            number, error = message.partition(), message.error()
            if error is not None and error.code() in ABOUT_A_GROUP:
                continue
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if number not in unfinished:  # the record comes after the end of the run
                continue
            offset = None if error is not None else message.offset()  # None at the end of the log
            if offset is not None and offset < unfinished[number]:
                yield number, message.key()
            if offset is None or offset + 1 >= unfinished[number]:
                del unfinished[number]
                self._consumer.incremental_unassign([TopicPartition(self._topic, number)])
