"""Measure how long an application processes its records.

Belongs here: timing the application between its calls to the client, and the report for a commit.
Belongs elsewhere: a client's types and calls (one module for each client), the counters at an
earlier offset (`progress`), and the text of a report (`fairlead.wire.work_report`).

The meter assigns time to the record that the application is processing. It knows this record if the
application asks for one record at a time, or iterates over one list of a batch. Other time, such as
the time of one insert for all rows of a batch, cannot be assigned to a record. This time only makes
the confidence intervals of the batch's partitions wider (`Meter._end_batch`).
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from threading import Lock
from typing import Any, Final

from fairlead.followers.core.passing_on import QUICK_S, PassingOn, Totals
from fairlead.followers.core.progress import Progress
from fairlead.wire.partitions import Pair
from fairlead.wire.work_report import PREFIX, TIMES_UNKNOWN, TOKEN_LENGTH, WorkReport, base36

Batch = dict[Any, list[Any]]
#: Consecutive messages of one partition in a list: the partition's progress (None: the messages are
#: errors), and the number of messages.
Run = tuple[Progress | None, int]

#: Seconds. Records of a batch are timed in groups that take about this long.
_GROUP_S: Final = 1e-3
#: Maximum number of records that are timed as one group.
_GROUP: Final = 256
#: Value of `Meter._run` while no run of records is in progress.
_NO_RUN: Final = Progress()


@dataclass(frozen=True)
class ReportedWork:
    """A summary of the work that a consumer reports.

    Parameters
    ----------
    records
        Records that the application received since the consumer was created.
    busy_share
        Share of the consumer's lifetime in which it did not wait for records.
    paused
        Number of paused partitions.
    several_at_a_time
        Whether several tasks ask for records at the same time. Their processing times then cannot
        be distinguished, and are not reported.
    passes_on
        Whether the application seems to pass records on to threads or tasks. Processing times are
        then unknown.

    Examples
    --------
    >>> print(ReportedWork(1200, 0.41, paused=2, several_at_a_time=False, passes_on=False))
    1,200 records, busy 41% of the time, 2 partitions paused
    """

    records: int
    busy_share: float
    paused: int
    several_at_a_time: bool
    passes_on: bool

    def __str__(self) -> str:
        paused = f", {self.paused} partitions paused" if self.paused else ""
        unknown = (
            ", times unknown because several tasks take records" if self.several_at_a_time else ""
        )
        if self.passes_on:
            unknown = ", times unknown because threads or tasks process records"
        return f"{self.records:,} records, busy {self.busy_share:.0%} of the time{paused}{unknown}"


class Meter:
    """Measures how long an application processes the records of one consumer.

    The consumer calls `asked` when the application asks for records, `waits` and `waited` around a
    wait for records, and then `took_one`, `took` or `took_list`. These calls must be on the
    application's thread. `report` may be called on any thread.

    Parameters
    ----------
    record_s_max
        Maximum seconds to count for one record: the client's `max.poll.interval.ms`, after which
        the group takes the partition away.
    clock
        Returns seconds of a monotonic clock.
    cpu_clock
        Returns seconds of processor time of the calling thread.
    """

    def __init__(
        self,
        record_s_max: float,
        clock: Callable[[], float] = time.perf_counter,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.token = "".join(base36(secrets.randbelow(36), 1) for _ in range(TOKEN_LENGTH))
        self._clock, self._cpu_clock = clock, cpu_clock
        self._max = record_s_max
        self._created = clock()
        self._progress: dict[Pair, Progress] = {}
        #: The partition of the record that the application processes now.
        self._running: Progress | None = None
        self._batch: _Batch | None = None
        #: When the application began to process the present record, or the present records of the
        #: batch.
        self.since = self._created
        #: Seconds in the application, and number of calls that returned records. Both exclude the
        #: present run (see below).
        self._handler, self._calls = 0.0, 0
        #: Number of calls after which the application needed less than `QUICK_S` per record.
        self._quick = 0
        self._passing_on = PassingOn()
        #: A run is a sequence of records of one partition, each returned by a separate call. These
        #: are the present run's partition, and its `busy` and `next` when the run began.
        self._run, self._run_busy, self._run_next = _NO_RUN, _NO_RUN.busy, _NO_RUN.next
        self._waiting = 0.0
        self._waiting_since: tuple[float, float] | None = None
        self._reported = (0.0, 0.0)
        self._given_up = False
        self._commits = Lock()

    def give_up(self) -> None:
        """Stop measuring, because several tasks or threads take records at the same time."""
        self._given_up = True

    def asked(self) -> None:
        """End the measurement of the previous records, because the application asks for more."""
        if self._batch is not None:
            self._charge()
            self._end_batch(self._batch)
        elif (progress := self._running) is not None:  # `_charge` inlined, for speed
            took = self._clock() - self.since
            self._running = None
            if took < QUICK_S:
                self._quick += 1
            elif took > self._max:
                self._handler += took - self._max
                took = self._max
            progress.busy += took
            progress.squares += took * took

    def waits(self) -> None:
        """Start timing a wait for records, unless the application still processes records."""
        if self._waiting_since is None and self._batch is None and self._running is None:
            self._waiting_since = self._clock(), self._cpu_clock()

    def waited(self) -> None:
        """Add the time since `waits` to the waiting time, if a wait was measured.

        The thread's processor time is subtracted, because in this time the client or other tasks of
        the event loop worked.
        """
        if self._waiting_since is not None:
            at, cpu_at = self._waiting_since
            took = self._clock() - at - (self._cpu_clock() - cpu_at)
            self._waiting_since = None
            self._waiting += max(0.0, took)

    def took_one(self, topic: str, partition: int, offset: int) -> Progress:
        """Start timing a record that the client returns; return the progress of its partition."""
        run = self._run
        if offset == run.next and partition == run.partition and topic == run.topic:
            run.next = offset + 1
        else:
            self._end_run()
            run = self.progress_of((topic, partition))
            run.take(offset)
            self._calls += 1
            self._run, self._run_busy, self._run_next = run, run.busy, run.next
        self.since = self._clock()
        self._running = run
        return run

    def begin(self) -> None:
        """Restart the timing of the returned records, to exclude the consumer's own work."""
        self.since = self._clock()

    def took(self, batch: Batch) -> Batch:
        """Start timing a batch that the client returns; return the batch with `TimedList` values.

        Parameters
        ----------
        batch
            Maps each TopicPartition to its records, which have the attribute `offset`.
        """
        if not batch:
            return batch
        self._end_run()
        under_way = _Batch(self, _offset)
        timed: Batch = {}
        for partition, records in batch.items():
            progress = self.progress_of((partition.topic, partition.partition))
            timed[partition] = under_way.list_of([(progress, len(records))], records)
        self._begin_batch(under_way)
        return timed

    def took_list(
        self, messages: Sequence[Any], runs: Sequence[Run], offset_of: Callable[[Any], int]
    ) -> list[Any]:
        """Start timing messages that the client returns; return the messages as a `TimedList`.

        Parameters
        ----------
        messages
            The messages, which may be of several partitions.
        runs
            For consecutive messages of one partition: the partition's progress, and the number of
            messages. In the order of `messages`.
        offset_of
            Returns the offset of a message.
        """
        self._end_run()
        under_way = _Batch(self, offset_of)
        timed = under_way.list_of(runs, messages)
        self._begin_batch(under_way)
        return timed

    def progress_of(self, pair: Pair) -> Progress:
        """Return the progress of a partition; create it if necessary."""
        progress = self._progress.get(pair)
        if progress is None:
            progress = self._progress[pair] = Progress(*pair)
        return progress

    def _end_run(self) -> None:
        self.asked()  # in case another task has received records since the last call of `asked`
        self._handler, self._calls = self._sums()
        self._run, self._run_busy, self._run_next = _NO_RUN, _NO_RUN.busy, _NO_RUN.next

    def _sums(self) -> tuple[float, int]:
        """Return the seconds in the application, and the number of calls that returned records."""
        return (
            self._handler + self._run.busy - self._run_busy,
            self._calls + self._run.next - self._run_next,
        )

    def _begin_batch(self, batch: "_Batch") -> None:
        self._calls += 1
        batch.handler_before = self._handler
        self.since = self._clock()
        self._batch = batch

    def _charge(self, records: int = 1) -> float:
        """Add the time since `self.since` to the partition that the application processes.

        If the partition is unknown, add the time to the batch's unassigned time.
        """
        now = self._clock()
        took = now - self.since
        progress, self._running, self.since = self._running, None, now
        self._handler += took
        if progress is not None:
            progress.spend(min(took, self._max), records)
        elif self._batch is not None:
            self._batch.loose_s += took
        return took

    def is_current(self, batch: "_Batch") -> bool:
        """Return whether a batch is the last one that the client returned."""
        return batch is self._batch

    def hand_out(self, progress: Progress | None, records: Sequence[Any]) -> None:
        """Start timing records of one partition, just before the application's loop gets them."""
        batch = self._batch
        assert batch is not None  # noqa: S101 - without a batch nothing is timed
        # If the application alternates between several lists, the present record is unknown.
        batch.mixed = batch.mixed or self._running is not None
        self._charge()
        if progress is not None:
            progress.take(batch.offset_of(records[0]))
        self._running = None if batch.mixed else progress

    def handed_out(self, progress: Progress | None, records: Sequence[Any]) -> float:
        """Count records that the application's loop has processed; return the seconds they took."""
        batch = self._batch
        assert batch is not None  # noqa: S101 - as above
        if progress is not None:
            progress.take_all(records[1:], batch.offset_of)
        return self._charge(len(records))

    def _end_batch(self, batch: "_Batch") -> None:
        """Count the records that the application did not iterate over; add the unassigned time.

        If the batch has one partition, the time is added to that partition. Otherwise the time only
        makes the confidence intervals of all partitions in the batch wider.
        """
        if self._handler - batch.handler_before < QUICK_S * batch.records:
            self._quick += 1
        loose_s = min(batch.loose_s, self._max)
        alone = len(batch.parts) == 1
        for progress in batch.parts:
            progress.end_batch()
            if alone:
                progress.spend(loose_s, 1)
            else:
                progress.widen(loose_s, self.since)
        self._batch = None

    def report(self, pair: Pair, offset: int, paused: int = 0) -> WorkReport:
        """Return the report to commit with an offset of a partition; thread-safe."""
        with self._commits:
            return self._report(self.progress_of(pair), offset, paused)

    def _report(self, progress: Progress, offset: int, paused: int) -> WorkReport:
        while True:  # repeat if the application's thread has changed the state while it was read
            state = self._batch, self.since, self._running
            (handler, calls), quick = self._sums(), self._quick
            busy, squares = progress.busy, progress.squares
            now = self._clock()
            if state == (self._batch, self.since, self._running):
                break
        batch, since, running = state
        under_way = 0.0 if batch is None and running is None else max(0.0, now - since)
        if running is progress:
            of_record = min(under_way, self._max)
            busy, squares = busy + of_record, squares + of_record * of_record
        if not self._given_up:
            progress.commit(offset, busy, squares)
        waiting, handler = self._reported = (
            max(self._reported[0], self._waited_until(now)),
            max(self._reported[1], handler + under_way),
        )
        elapsed, reported = now - self._created, progress.reported
        self._passing_on.note(Totals(elapsed, waiting, handler, calls, quick))
        return WorkReport(
            elapsed_ms=round(elapsed * 1e3),
            waiting_ms=round(waiting * 1e3),
            handler_ms=round(handler * 1e3),
            calls=calls,
            records=reported.records,
            busy_ms=round(reported.busy * 1e3),
            busy_squares_ms2=round(reported.squares * 1e6),
            paused=TIMES_UNKNOWN if self._given_up or self._passing_on.detected else paused,
            at_ms=round(time.time() * 1e3),
        )

    def reported_work(self, paused: int = 0) -> ReportedWork:
        """Return a summary of all partitions."""
        now = self._clock()
        elapsed = now - self._created
        idle_share = self._waited_until(now) / elapsed if elapsed else 0.0
        return ReportedWork(
            records=sum(progress.records for progress in list(self._progress.values())),
            busy_share=1 - min(1.0, idle_share),
            paused=paused,
            several_at_a_time=self._given_up,
            passes_on=self._passing_on.detected,
        )

    def _waited_until(self, now: float) -> float:
        """Return the seconds of waiting, including a wait that has not ended."""
        waiting, begun = self._waiting, self._waiting_since
        return waiting if begun is None else waiting + max(0.0, now - begun[0])


class _Batch:
    """The records that one call of the client returned."""

    __slots__ = ("handler_before", "loose_s", "meter", "mixed", "offset_of", "parts", "records")

    def __init__(self, meter: Meter, offset_of: Callable[[Any], int]) -> None:
        self.meter = meter
        self.offset_of = offset_of
        self.parts: set[Progress] = set()
        self.records = 0
        #: Seconds that the application had spent on records before this batch.
        self.handler_before = 0.0
        #: Seconds that cannot be assigned to a record.
        self.loose_s = 0.0
        #: Whether the application alternates between several lists of the batch.
        self.mixed = False

    def list_of(self, runs: Sequence[Run], records: Sequence[Any]) -> "TimedList":
        """Add records to the batch, and return them as a `TimedList`."""
        start = 0
        for progress, count in runs:
            if progress is not None and count:
                self.records += count
                self.parts.add(progress)
                progress.begin_batch(records, start, start + count, self.offset_of)
            start += count
        return TimedList(self, runs, records)


class TimedList(list[Any]):
    """A list that measures how long the application processes each record; its copies do not."""

    __slots__ = ("_original", "batch", "runs")

    def __init__(self, batch: _Batch, runs: Sequence[Run], records: Sequence[Any]) -> None:
        super().__init__(records)
        self._original = tuple(records)
        self.batch = batch
        self.runs = runs

    def __iter__(self) -> Iterator[Any]:
        """Yield the records, and measure how long the application processes each.

        A list that the application has changed is not timed, since the partitions of its records
        are unknown.
        """
        return chain.from_iterable(self._portions())

    def _portions(self) -> Iterator[Iterable[Any]]:
        """Yield iterators, each over records that are timed as one group."""
        rest, meter, at = list.__iter__(self), self.batch.meter, 0
        for progress, count in self.runs:
            end, together = at + count, 1
            while at < end and meter.is_current(self.batch):
                portion = tuple(islice(rest, min(end - at, together)))
                if not portion or portion != self._original[at : at + len(portion)]:
                    yield portion
                    break
                meter.hand_out(progress, portion)
                iterator: Any = iter(portion)
                took_s = 0.0
                try:
                    yield iterator
                finally:
                    if meter.is_current(self.batch):
                        returned = portion[: len(portion) - iterator.__length_hint__()]
                        took_s = meter.handed_out(progress, returned)
                at += len(portion)
                together = _together(took_s / len(portion))
        yield rest

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy or pickle only the records."""
        return list, (list.copy(self),)


def _together(record_s: float) -> int:
    """Return the number of records to time as one group, if a record takes this long."""
    return max(1, min(_GROUP, int(_GROUP_S / max(record_s, 1e-9))))


def _offset(record: Any) -> int:
    offset: int = record.offset
    return offset


def reported(
    offsets: Mapping[Any, Any], meter: Meter, member_id: str, *, paused: int
) -> dict[Any, Any]:
    """Return the offsets with reports as metadata, unless the application has set metadata.

    Parameters
    ----------
    offsets
        Maps each TopicPartition to its OffsetAndMetadata, a named tuple.
    member_id
        The consumer's member id.
    paused
        Number of paused partitions.

    Notes
    -----
    The report ends with a NUL byte, because without it confluent-kafka reads past the end of the
    metadata.
    """
    return {
        partition: offset
        if has_metadata(offset.metadata)
        else offset._replace(
            metadata=meter.report(
                (partition.topic, partition.partition), offset.offset, paused
            ).text(member_id, meter.token)
            + "\0"
        )
        for partition, offset in offsets.items()
    }


def has_metadata(metadata: str | None) -> bool:
    """Return whether the metadata is the application's: neither empty nor a report."""
    return bool(metadata) and not str(metadata).startswith(PREFIX)
