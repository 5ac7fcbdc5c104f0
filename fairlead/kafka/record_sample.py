"""Sampling the records of a topic with Fetch requests of a chosen size.

Belongs here: the window in the log, the requests, and their bounds. Does not: which runs are read
(`fairlead.domain.record_sample`), nor decoding (`record_batches`).

No group is joined, and nothing is committed. A client that prefetches would not do: librdkafka
fetched 319 MB for 48,000 records in 600 runs of 80, and these requests a tenth of that.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from fairlead.domain.record_sample import CELLS, Float64, LogWindow, RecordSample, Runs, plan_runs
from fairlead.errors import TopicError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.record_batches import batches
from fairlead.kafka.rights import remedy

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

#: Runs in all. More spread a sample better, and take a request each.
RUNS: Final = 2_400
#: Runs, and the offsets of each, that show how large records and batches are.
_PROBES: Final = 24
_PROBE: Final = 8
#: Bytes asked for of a partition at first; a larger batch comes whole, one in a response.
_FETCH: Final = 16_384
#: Bytes of a response.
_RESPONSE: Final = 8 * 2**20
#: Of the bytes that may be read, those that runs are planned for.
_PLANNED: Final = 0.5
#: Fetch by the names of topics; later versions have their ids.
_VERSION: Final = 12
_WAIT_MS: Final = 500


@dataclass(frozen=True)
class Limits:
    """How much is read at most.

    Parameters
    ----------
    records, bytes, seconds
        Records to sample, bytes of fetched batches, and how long that may take.
    """

    records: int = 100_000
    bytes: int = 100_000_000
    seconds: float = 60.0


def window_of(gateway: KafkaGateway, topic: str, seconds: float) -> LogWindow:
    """Return the part of a topic's log that was written in the last so many seconds.

    It ends before the first record of an open transaction.

    Raises
    ------
    TopicError
        There is no such topic, or no right to read it, or nothing was written.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    from kafka import IsolationLevel, TopicPartition  # noqa: PLC0415 - as long as all else here
    from kafka.admin import OffsetSpec  # noqa: PLC0415 - the same
    from kafka.errors import BrokerResponseError  # noqa: PLC0415 - the same

    since = int((time.time() - seconds) * 1_000)

    def ask(admin: "KafkaAdminClient") -> tuple[Any, Any]:
        (found,) = admin.describe_topics([topic])
        if found["error_code"]:
            _raise(topic, found["error_code"])
        count = len(found["partitions"])
        partitions = [TopicPartition(topic, number) for number in range(count)]
        return tuple(
            admin.list_partition_offsets(
                dict.fromkeys(partitions, spec), IsolationLevel.READ_COMMITTED
            )
            for spec in (since, OffsetSpec.LATEST)
        )

    try:
        begins, ends = gateway.ask_members(ask)
    except BrokerResponseError as error:
        _raise(topic, error.errno)
    end = np.array([ends[each].offset for each in sorted(ends)])
    begin = np.array([begins[each].offset for each in sorted(ends)])
    begin = np.where(begin < 0, end, np.minimum(begin, end))  # -1: nothing was written since
    if not (end - begin).any():
        raise TopicError(
            f"Topic {topic}: no record was written in the last {seconds / 60:g} minutes. Ask for "
            "more with --minutes"
        )
    return LogWindow(topic, begin, end, seconds)


def sample_records(
    gateway: KafkaGateway,
    window: LogWindow,
    limits: Limits,
    partition: int | None = None,
    seed: int = 0,
) -> RecordSample:
    """Read records of a window, spread evenly over time and partitions.

    Parameters
    ----------
    partition
        Half of the records are read of it; None: of all in proportion.

    Raises
    ------
    TopicError
        There is no right to read the topic, or its records cannot be decoded.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    density, of_run, _, spent = probe(gateway, window, limits)
    runs = min(RUNS, int(_PLANNED * (limits.bytes - spent) / max(of_run, 1.0)))
    planned = plan_runs(window, limits.records / density, runs, partition=partition, seed=seed)
    rest = Limits(limits.records, limits.bytes - spent, limits.seconds)
    return _read(gateway, window, planned, rest)


def probe(
    gateway: KafkaGateway, window: LogWindow, limits: Limits
) -> tuple[float, float, float, int]:
    """Return records by offset, bytes by run, bytes by record, and the bytes read for it."""
    runs = plan_runs(window, _PROBES * _PROBE, _PROBES, seed=1).first(_PROBES)
    found = _read(gateway, window, runs, limits)
    records = sum(found.cells["count"].to_pylist())
    offsets = int((found.runs.stop - found.runs.begin).sum())
    read = max(len(found.runs.partition), 1)
    density = max(records / max(offsets, 1), 1e-3)
    return density, found.bytes / read, found.record_bytes, found.bytes


def _read(gateway: KafkaGateway, window: LogWindow, runs: Runs, limits: Limits) -> RecordSample:
    from kafka.errors import BrokerResponseError  # noqa: PLC0415 - as above

    try:
        return gateway.ask_members(
            lambda admin: admin._manager.run(_fetch, admin, window, runs, limits)  # noqa: SLF001 - no public way to send
        )
    except BrokerResponseError as error:
        _raise(window.topic, error.errno)
    except TopicError as error:
        raise TopicError(f"Topic {window.topic}: {error}") from error


async def _fetch(
    admin: "KafkaAdminClient", window: LogWindow, runs: Runs, limits: Limits
) -> RecordSample:
    """Read runs in turns: the next one of each partition at a time."""
    began, size, stopped = time.monotonic(), 0, ""
    cells = Counter[tuple[int, bytes | None]]()
    stored = np.zeros(2)
    (found,) = (await admin._get_cluster_metadata([window.topic]))["topics"]  # noqa: SLF001 - as above
    leaders = {each["partition_index"]: each["leader_id"] for each in found["partitions"]}
    room = dict.fromkeys(leaders, _FETCH)
    done = 0
    while done < len(runs.partition):
        if size >= limits.bytes or time.monotonic() - began > limits.seconds:
            stopped = "bytes" if size >= limits.bytes else "seconds"
            break
        turn = _turn(runs.partition, done)
        # Partition to the run, and the offset it is read from next.
        left = {int(runs.partition[run]): (run, int(runs.begin[run])) for run in turn}
        done = turn.stop
        while left and time.monotonic() - began <= limits.seconds:
            answered = await _ask(admin, window.topic, left, leaders, room)
            size += sum(len(answer.records or b"") for answer in answered)
            for answer in answered:
                run, position = left.pop(answer.partition_index)
                position = _take(answer, run, position, int(runs.stop[run]), cells, room, stored)
                if position < runs.stop[run]:
                    left[answer.partition_index] = run, position  # behind the others
        if left:
            done, stopped = turn.start, "seconds"
            break
    kept = [(run, key, count) for (run, key), count in cells.items() if run < done]
    columns = zip(*kept, strict=True) if kept else ((), (), ())
    table = pa.table([pa.array(each) for each in columns], names=CELLS.names).cast(CELLS)
    seconds = time.monotonic() - began
    mean = float(stored[0] / max(stored[1], 1))
    read = runs.first(done)
    return RecordSample(window, read, table, size, seconds, mean, stopped=stopped)


def _turn(partitions: np.typing.NDArray[np.int64], first: int) -> range:
    """Return the next runs of different partitions."""
    seen, last = set[int](), first
    while last < len(partitions) and int(partitions[last]) not in seen:
        seen.add(int(partitions[last]))
        last += 1
    return range(first, last)


async def _ask(
    admin: "KafkaAdminClient",
    topic: str,
    left: Mapping[int, tuple[int, int]],
    leaders: Mapping[int, int],
    room: Mapping[int, int],
) -> list[Any]:
    """Fetch from each leader; a response has one batch at least of the first partition asked for."""
    from kafka import IsolationLevel  # noqa: PLC0415 - as above
    from kafka.protocol.consumer import FetchRequest  # noqa: PLC0415 - the same

    of_node: dict[int, list[Any]] = {}
    for partition, (_, position) in left.items():
        of_node.setdefault(leaders[partition], []).append(
            FetchRequest.FetchTopic.FetchPartition(
                partition=partition,
                fetch_offset=position,
                partition_max_bytes=room[partition],
            )
        )
    sent = [
        admin._manager.send(  # noqa: SLF001 - as above
            FetchRequest(
                max_wait_ms=_WAIT_MS,
                min_bytes=1,
                max_bytes=_RESPONSE,
                isolation_level=IsolationLevel.READ_COMMITTED,
                session_epoch=-1,
                topics=[FetchRequest.FetchTopic(topic=topic, partitions=asked)],
                max_version=_VERSION,
            ),
            node_id=node,
        )
        for node, asked in of_node.items()
    ]
    return [each for future in sent for of in (await future).responses for each in of.partitions]


def _take(  # noqa: PLR0913 - one partition's answer, and where it goes
    answer: Any,
    run: int,
    position: int,
    stop: int,
    cells: Counter[tuple[int, bytes | None]],
    room: dict[int, int],
    stored: Float64,
) -> int:
    """Count the keys of a response; return the offset that is read next."""
    from kafka.errors import OffsetOutOfRangeError, for_code  # noqa: PLC0415 - as above

    if answer.error_code == OffsetOutOfRangeError.errno:
        return stop  # retention has deleted it
    if answer.error_code:
        raise for_code(answer.error_code)
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
    reached = position
    for batch in batches(answer.records or b"", position, stop, aborted):
        cells.update((run, key) for key in batch.keys)
        stored += batch.size, batch.records
        reached = batch.next_offset
        if reached >= stop:
            return stop
    if reached == position:
        if not answer.records and position >= answer.last_stable_offset:
            return stop  # nothing follows
        room[answer.partition_index] *= 2
    return reached


def _raise(topic: str, code: int) -> Any:
    from kafka import errors  # noqa: PLC0415 - as above

    if code == errors.UnknownTopicOrPartitionError.errno:
        raise TopicError(f"Topic {topic}: there is none of this name in the cluster")
    if code == errors.TopicAuthorizationFailedError.errno:
        raise TopicError(
            f"Topic {topic}: no right to read it. {remedy('topic', topic, ['DESCRIBE', 'READ'])}"
        )
    raise TopicError(f"Topic {topic}: Kafka answers {errors.for_code(code).__name__}")
