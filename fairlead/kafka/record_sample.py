"""Sampling the records of a topic with Fetch requests of a chosen size.

Belongs here: the window in the log, the requests, and their bounds. Does not: which runs are read
(`fairlead.domain.record_sample`), nor decoding (`record_batches`).

No group is joined, and nothing is committed. A consumer would prefetch too much: for 48,000 records
in 600 runs librdkafka fetched 319 MB.
"""

import time
from array import array
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.domain.record_sample import CELLS, Float64, LogWindow, RecordSample, Runs, plan_runs
from fairlead.errors import TopicError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.record_batches import batches
from fairlead.kafka.rights import remedy

if TYPE_CHECKING:  # imported on use: it takes as long as the rest of this module
    from kafka.admin import KafkaAdminClient

#: Default number of records to sample.
RECORDS: Final = 100_000
#: Maximum bytes of fetched batches, and maximum seconds.
MOST_BYTES: Final = 100_000_000
MOST_S: Final = 60.0
#: Maximum number of runs. More runs spread a sample better, but each takes a request.
_RUNS: Final = 2_400
#: Runs of the probe for sizes of records and batches, and offsets of each run.
_PROBES: Final = 24
_PROBE: Final = 8
#: Bytes requested from a partition at first; a larger batch comes alone in a response.
_FETCH: Final = 16_384
#: Bytes requested in a request.
_RESPONSE: Final = 2**20
#: Share of the maximum bytes for planned runs; the rest is for parts of batches outside of runs.
_PLANNED: Final = 0.5
#: Latest version of Fetch with names of topics; later ones use ids.
_VERSION: Final = 12
_WAIT_MS: Final = 500


def window_of(gateway: KafkaGateway, topic: str, seconds: float) -> LogWindow:
    """Return the part of a topic's log that was written in the last `seconds`.

    It ends before the first record of an open transaction.

    Raises
    ------
    TopicError
        The topic does not exist or is empty in that time, or there is no right to read it.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    from kafka import IsolationLevel, TopicPartition  # noqa: PLC0415 - as above
    from kafka.admin import OffsetSpec  # noqa: PLC0415 - the same
    from kafka.errors import BrokerResponseError  # noqa: PLC0415 - the same

    since = int((time.time() - seconds) * 1_000)

    def ask(admin: "KafkaAdminClient") -> list[list[int]]:
        (found,) = admin.describe_topics([topic])
        if found["error_code"]:
            _raise(topic, found["error_code"])
        places = [TopicPartition(topic, number) for number in range(len(found["partitions"]))]
        answers = [
            admin.list_partition_offsets(dict.fromkeys(places, spec), IsolationLevel.READ_COMMITTED)
            for spec in (since, OffsetSpec.LATEST)
        ]
        return [[answer[place].offset for place in places] for answer in answers]

    try:
        begin, end = map(np.array, gateway.ask_members(ask))
    except BrokerResponseError as error:
        _raise(topic, error.errno)
    begin = np.where(begin < 0, end, np.minimum(begin, end))  # -1: no record since then
    if not (end - begin).any():
        raise TopicError(
            f"Topic {topic}: no record was written in the last {seconds / 60:g} minutes. Ask for "
            "more with --minutes"
        )
    return LogWindow(topic, begin, end, seconds)


def sample_records(
    gateway: KafkaGateway,
    window: LogWindow,
    records: int = RECORDS,
    partition: int | None = None,
    seed: int = 0,
) -> RecordSample:
    """Read records of a window, spread evenly over time and partitions.

    Parameters
    ----------
    records
        Approximate number.
    partition
        Partition to read half of the records from; None: all partitions in proportion.
    seed
        Seed of the random positions.

    Raises
    ------
    TopicError
        There is no right to read the topic, or its records cannot be decoded.
    KafkaUnavailableError
        Brokers do not answer in time.
    """
    density, first = probe(gateway, window)
    runs = int(_PLANNED * (MOST_BYTES - first.bytes) * first.runs.turn.size / max(first.bytes, 1))
    planned = plan_runs(window, records / density, min(_RUNS, runs), partition=partition, seed=seed)
    return _read(gateway, window, planned, MOST_BYTES - first.bytes)


def probe(gateway: KafkaGateway, window: LogWindow) -> tuple[float, RecordSample]:
    """Return the mean number of records per offset, and the small sample that it comes from."""
    runs = plan_runs(window, _PROBES * _PROBE, _PROBES, seed=1).first(_PROBES)
    found = _read(gateway, window, runs, MOST_BYTES)
    records = sum(found.cells["count"].to_pylist())
    offsets = int((found.runs.stop - found.runs.begin).sum())
    return max(records / max(offsets, 1), 1e-3), found


def _read(gateway: KafkaGateway, window: LogWindow, runs: Runs, most_bytes: int) -> RecordSample:
    from kafka.errors import BrokerResponseError  # noqa: PLC0415 - as above

    def read(admin: "KafkaAdminClient") -> RecordSample:
        found: RecordSample = admin._manager.run(_fetch, admin, window, runs, most_bytes)  # noqa: SLF001 - no public way to send
        return found

    try:
        return gateway.ask_members(read)
    except BrokerResponseError as error:
        _raise(window.topic, error.errno)
    except TopicError as error:
        raise TopicError(f"Topic {window.topic}: {error}") from error


async def _fetch(
    admin: "KafkaAdminClient", window: LogWindow, runs: Runs, most_bytes: int
) -> RecordSample:
    """Read runs turn by turn, until all are read or a limit is reached."""
    began, size, stopped, done = time.monotonic(), 0, "", 0
    found = _Found()
    (about,) = (await admin._get_cluster_metadata([window.topic]))["topics"]  # noqa: SLF001 - as above
    leaders = {each["partition_index"]: each["leader_id"] for each in about["partitions"]}
    for turn in runs.turns():
        # Partition to its run, and the offset that is read next.
        left = {int(runs.partition[run]): (int(run), int(runs.begin[run])) for run in turn}
        while left and not stopped:
            for answer in await _ask(admin, window.topic, left, leaders, found.room):
                size += len(answer.records or b"")
                run, position = left.pop(answer.partition_index)
                position = found.take(answer, run, position, int(runs.stop[run]))
                if position < runs.stop[run]:
                    left[answer.partition_index] = run, position  # after the others
            if size > most_bytes:
                stopped = "bytes"
            elif time.monotonic() - began > MOST_S:
                stopped = "seconds"
        if left:
            break
        done = int(turn[-1]) + 1
        if stopped:
            break
    stopped = stopped if done < runs.turn.size else ""
    read = pa.table(
        [pa.array(np.frombuffer(found.runs, np.int64)), pa.array(found.keys, pa.binary())],
        CELLS.names[:2],
    )
    read = read.filter(pc.less(read["run"], done))
    cells = (
        read.group_by(CELLS.names[:2]).aggregate([([], "count_all")]).rename_columns(CELLS.names)
    )
    mean = float(found.stored[0] / max(found.stored[1], 1))
    seconds = time.monotonic() - began
    return RecordSample(window, runs.first(done), cells, size, seconds, mean, stopped=stopped)


async def _ask(
    admin: "KafkaAdminClient",
    topic: str,
    left: Mapping[int, tuple[int, int]],
    leaders: Mapping[int, int],
    room: Mapping[int, int],
) -> list[Any]:
    """Fetch from each leader as many partitions as fit into a response, at least one."""
    from kafka import IsolationLevel  # noqa: PLC0415 - as above
    from kafka.protocol.consumer import FetchRequest  # noqa: PLC0415 - the same

    of_node: dict[int, list[Any]] = {}
    sizes = Counter[int]()
    for partition, (_, position) in left.items():
        size = room.get(partition, _FETCH)
        sizes[leaders[partition]] += size
        if size < sizes[leaders[partition]] > _RESPONSE:
            continue  # in the next request
        asked = FetchRequest.FetchTopic.FetchPartition(
            partition=partition,
            fetch_offset=position,
            partition_max_bytes=size,
        )
        of_node.setdefault(leaders[partition], []).append(asked)
    sent = []
    for node, partitions in of_node.items():
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            isolation_level=IsolationLevel.READ_COMMITTED,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=partitions)],
            max_version=_VERSION,
        )
        sent.append(admin._manager.send(request, node_id=node))  # noqa: SLF001 - as above
    return [each for future in sent for of in (await future).responses for each in of.partitions]


class _Found:
    """Content of responses: keys with their runs; bytes and records; bytes to request next."""

    def __init__(self) -> None:
        self.runs = array("q")
        self.keys: list[bytes | None] = []
        self.stored: Float64 = np.zeros(2)
        self.room: dict[int, int] = {}

    def take(self, answer: Any, run: int, position: int, stop: int) -> int:
        """Count the keys of a run in a response; return the offset that is read next."""
        from kafka.errors import OffsetOutOfRangeError, for_code  # noqa: PLC0415 - as above

        if answer.error_code == OffsetOutOfRangeError.errno:
            return stop  # retention has deleted it
        if answer.error_code:
            raise for_code(answer.error_code)
        aborted = [
            (each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()
        ]
        reached = position
        for batch in batches(answer.records or b"", position, stop, aborted):
            self.runs.extend([run] * len(batch.keys))
            self.keys += batch.keys
            self.stored += batch.size, batch.records
            reached = batch.next_offset
            if reached >= stop:
                return stop
        if reached == position:
            if not answer.records and position >= answer.last_stable_offset:
                return stop  # nothing follows
            partition = answer.partition_index
            self.room[partition] = min(2 * self.room.get(partition, _FETCH), _RESPONSE)
        return reached


def _raise(topic: str, code: int) -> NoReturn:
    from kafka import errors  # noqa: PLC0415 - as above

    if code == errors.UnknownTopicOrPartitionError.errno:
        raise TopicError(f"Topic {topic} does not exist")
    if code == errors.TopicAuthorizationFailedError.errno:
        how = remedy("topic", topic, ["DESCRIBE", "READ"])
        raise TopicError(f"Topic {topic}: no right to read it. {how}")
    raise TopicError(f"Topic {topic}: Kafka answers {errors.for_code(code).__name__}")
