"""How long an application takes for its records: counters that only grow.

Belongs here: timing what the application does between its calls, and what is reported with a
commit. Does not: a client's types and calls (one module for each client), nor the text of a report
(`fairlead.wire.work_report`).

Time goes to the record that the application has in hand. That is known while it asks for one record
at a time, and while it iterates over one list of a batch. The rest of a batch's time belongs to no
record: rows may be collected first and stored together. It is counted so that it widens the
intervals of the partitions in the batch (`Meter._end_batch`).
"""

import secrets
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from fairlead.wire.work_report import PREFIX, SEVERAL_AT_A_TIME, TOKEN_LENGTH, WorkReport, base36

Pair = tuple[str, int]
Batch = dict[Any, list[Any]]

#: Seconds. Of records that take less, one in so many of a batch is timed on its own.
_QUICK_S: Final = 20e-6
_ONE_IN: Final = 16
#: Earlier states that are kept of a partition, and seconds between two of them at least.
_KEPT: Final = 64
_KEPT_EVERY_S: Final = 1.0
#: Seconds for which the largest lead of commits over work counts.
_LEAD_S: Final = 600.0


class _Work:
    """What one partition's records took."""

    __slots__ = ("busy", "committed", "kept", "lead", "lead_at", "records", "reported", "squares")

    def __init__(self) -> None:
        self.records = 0
        self.busy = 0.0
        self.squares = 0.0
        #: Offset of the last commit; by how much commits were ahead of `records` at most, since.
        self.committed = -1
        self.lead = 0
        self.lead_at = float("-inf")
        self.kept: deque[tuple[float, int, float, float]] = deque(maxlen=_KEPT)
        self.reported = (0, 0.0, 0.0)

    def at(self, offset: int, now: float, state: tuple[int, float, float]) -> None:
        """Set `reported` to a state in which at most the records before an offset are counted.

        An application may commit ahead of its work or behind it. A reader can check the records of
        a report against the committed offsets only if reported records never grow by more.
        """
        records = state[0]
        ahead = offset - records
        if offset < self.committed or now - self.lead_at > _LEAD_S:
            self.lead, self.lead_at = ahead, now
        self.lead = max(self.lead, ahead)
        self.committed = offset
        allowed = offset - self.lead
        kept_at, kept_records = self.kept[-1][:2] if self.kept else (float("-inf"), -1)
        apart = 2 * (records - allowed) / _KEPT  # so that they go back to what is allowed
        if now - kept_at >= _KEPT_EVERY_S and records - kept_records > apart:
            self.kept.append((now, *state))
        states = [state, *(kept[1:] for kept in reversed(self.kept))]
        found = next((its for its in states if its[0] <= allowed), None)
        if found is not None and found[0] >= self.reported[0]:
            before = self.reported
            self.reported = (found[0], max(before[1], found[1]), max(before[2], found[2]))


class Meter:
    """Times what an application does with the records of one consumer.

    The consumer calls `asked` when the application calls it, then `waited`, and at last
    `took_one` or `took`. All of them on the application's thread; `report` on any.

    Parameters
    ----------
    record_s_max
        Seconds. A record counts for no more: the group would have taken its partition away.
    """

    def __init__(self, record_s_max: float) -> None:
        self.token = "".join(base36(secrets.randbelow(36), 1) for _ in range(TOKEN_LENGTH))
        self._clock = time.perf_counter
        self._max = record_s_max
        self._created = self._clock()
        self._work: dict[Pair, _Work] = {}
        #: The partition of the record in hand, or None; since when; a batch, or None.
        self._running: _Work | None = None
        self._since = self._created
        self._batch: dict[_Work, int] | None = None
        self._loose = 0.0
        self._out = False
        self._waiting = self._handler = 0.0
        self._waiting_since: float | None = None
        self._calls = 0
        self._given_up = False

    def give_up(self) -> None:
        """Note that the application takes records in several tasks or threads at a time.

        From now on times are not counted: whose work they are is not known.
        """
        self._given_up = True

    def asked(self) -> None:
        """Note that the application asks for more: it is done with what it took."""
        if not self._out:
            return
        if self._batch is not None:
            self._charge(None)
            self._end_batch(self._batch)
        else:  # as `_charge` does it: this is called for each record
            took = self._clock() - self._since
            self._handler += took
            work = self._running
            self._running = None
            if work is not None:
                took = min(took, self._max)
                work.busy += took
                work.squares += took * took
        self._out = False

    def waits(self) -> None:
        """Note that a call finds nothing to return at once."""
        self._waiting_since = self._clock()

    def waited(self, working_s: float = 0.0) -> None:
        """Note that the wait is over.

        Parameters
        ----------
        working_s
            Seconds of it in which the thread worked: for the client itself, or for others.
        """
        if self._waiting_since is not None:
            self._waiting += max(0.0, self._clock() - self._waiting_since - working_s)
            self._waiting_since = None

    def took_one(self, topic: str | None, partition: int | None) -> None:
        """Note that the application takes a record."""
        pair: Any = topic, partition  # a client's types allow None, for errors
        work = self._work.get(pair) or self._of(pair)
        work.records += 1
        self._calls += 1
        self._running = work
        self._out = True
        self._since = self._clock()

    def took(self, batch: Batch) -> Batch:
        """Note that the application takes a batch; return it with lists that are timed."""
        if not batch:
            return batch
        left: dict[_Work, int] = {}
        timed: Batch = {}
        for partition, records in batch.items():
            work = self._of((partition.topic, partition.partition))
            left[work] = len(records)
            timed[partition] = _TimedList(self, work, left, records)
        self._begin_batch(left)
        return timed

    def took_list(self, messages: list[Any]) -> list[Any]:
        """Note that the application takes messages of any partitions; return a timed list."""
        works = [
            None if message.error() else self._of((message.topic(), message.partition()))
            for message in messages
        ]
        left: dict[_Work, int] = dict(Counter(work for work in works if work is not None))
        self._begin_batch(left)
        return _TimedMessages(self, works, left, messages)

    def _begin_batch(self, left: dict[_Work, int]) -> None:
        self._calls += 1
        self._batch, self._loose = left, 0.0
        self._running = None
        self._out = True
        self._since = self._clock()

    def _of(self, pair: Pair) -> _Work:
        work = self._work.get(pair)
        if work is None:
            work = self._work[pair] = _Work()
        return work

    def _charge(self, then: _Work | None) -> float:
        """Count the time since the last call for what is in hand, and take up something else."""
        now = self._clock()
        took = now - self._since
        work = self._running
        self._running, self._since = then, now
        self._handler += took
        if work is None:
            self._loose += took
        else:
            took = min(took, self._max)
            work.squares += took * took
            work.busy += took
        return took

    def _iterate(self, work: _Work, records: "_TimedList") -> Iterator[Any]:
        """Yield a list's records; count what the application does with each."""
        batch = self._batch
        if batch is None or batch is not records.batch:
            yield from list.__iter__(records)
            return
        rest = list.__iter__(records)
        self._charge(work)
        try:
            for record in rest:
                work.records += 1
                batch[work] -= 1
                yield record
                took = self._charge(work)
                if took < _QUICK_S and batch is self._batch:
                    yield from self._quick(work, rest, took, batch)
        finally:
            if batch is self._batch and self._out:
                self._charge(None)

    def _iterate_messages(
        self, works: Sequence[_Work | None], messages: "_TimedMessages"
    ) -> Iterator[Any]:
        """Yield messages of any partitions; count what the application does with each."""
        batch = self._batch
        if batch is None or batch is not messages.batch:
            yield from list.__iter__(messages)
            return
        try:
            for work, message in zip(works, list.__iter__(messages), strict=True):
                if batch is self._batch:
                    self._charge(work)
                    if work is not None:
                        work.records += 1
                        batch[work] -= 1
                yield message
        finally:
            if batch is self._batch and self._out:
                self._charge(None)

    def _quick(
        self, work: _Work, rest: Iterator[Any], took: float, batch: dict[_Work, int]
    ) -> Iterator[Any]:
        """Yield the next records without timing each: they count like the one before."""
        since = self._clock()
        some = list(islice(rest, _ONE_IN - 1))
        left: Any = iter(some)
        try:
            yield from left
        finally:
            count = len(some) - left.__length_hint__()
            now = self._clock()
            if batch is self._batch and count:
                work.records += count
                batch[work] -= count
                together = now - since
                self._handler += together
                work.busy += together
                work.squares += max(count * took * took, together * together / count)
                self._since = now

    def _end_batch(self, batch: Mapping[_Work, int]) -> None:
        """Count time that belongs to no record of the batch.

        Nobody knows which record took it. If all records are of one partition, it is that
        partition's. In either case its square counts as if one record had taken all of it, so that
        an interval is narrow only if that would change little.
        """
        loose = min(self._loose, self._max)
        for work, left in batch.items():
            work.records += max(0, left)
            work.squares += loose * loose
            if len(batch) == 1:
                work.busy += loose
        self._batch = None

    def report(self, pair: Pair, offset: int, paused: int = 0) -> WorkReport:
        """Return what is reported when an offset of a partition is committed."""
        now = self._clock()
        running, since, waiting_since = self._running, self._since, self._waiting_since
        work = self._of(pair)
        under_way = max(0.0, now - since) if self._out else 0.0
        records, busy, squares = work.records, work.busy, work.squares
        if running is work:
            of_record = min(under_way, self._max)
            busy, squares = busy + of_record, squares + of_record**2
        if not self._given_up:
            work.at(offset, now, (records, busy, squares))
        records, busy, squares = work.reported
        waiting = self._waiting + (0.0 if waiting_since is None else max(0.0, now - waiting_since))
        return WorkReport(
            elapsed_ms=round((now - self._created) * 1e3),
            waiting_ms=round(waiting * 1e3),
            handler_ms=round((self._handler + under_way) * 1e3),
            calls=self._calls,
            records=records,
            busy_ms=round(busy * 1e3),
            busy_squares_ms2=round(squares * 1e6),
            paused=SEVERAL_AT_A_TIME if self._given_up else paused,
            at_ms=round(time.time() * 1e3),
        )


class _TimedList(list[Any]):
    """The records of one partition in a batch: a list that times who iterates over it."""

    __slots__ = ("_meter", "_work", "batch")

    def __init__(
        self, meter: Meter, work: _Work, batch: dict[_Work, int], records: list[Any]
    ) -> None:
        super().__init__(records)
        self._meter = meter
        self._work = work
        self.batch = batch

    def __iter__(self) -> Iterator[Any]:
        return self._meter._iterate(self._work, self)  # noqa: SLF001 - its other half


class _TimedMessages(list[Any]):
    """The messages of any partitions in a batch: a list that times who iterates over it."""

    __slots__ = ("_meter", "_works", "batch")

    def __init__(
        self,
        meter: Meter,
        works: list[_Work | None],
        batch: dict[_Work, int],
        messages: list[Any],
    ) -> None:
        super().__init__(messages)
        self._meter = meter
        self._works = works
        self.batch = batch

    def __iter__(self) -> Iterator[Any]:
        return self._meter._iterate_messages(self._works, self)  # noqa: SLF001 - its other half


def reported(
    offsets: Mapping[Any, Any], meter: Meter, member_id: str, *, paused: int
) -> dict[Any, Any]:
    """Return offsets with reports in the place of empty metadata.

    Parameters
    ----------
    offsets
        A client's TopicPartition to its OffsetAndMetadata, a named tuple.
    member_id
        Of the consumer that commits.
    paused
        How many of its partitions are paused.
    """
    return {
        partition: offset
        if has_metadata(offset.metadata)
        else offset._replace(
            metadata=meter.report(
                (partition.topic, partition.partition), offset.offset, paused
            ).text(member_id, meter.token)
        )
        for partition, offset in offsets.items()
    }


def has_metadata(metadata: str | None) -> bool:
    """Whether an application has given metadata with an offset. A report counts as none."""
    return bool(metadata) and not str(metadata).startswith(PREFIX)
