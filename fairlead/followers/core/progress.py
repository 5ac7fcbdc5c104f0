"""The counters of one partition, now and at earlier commits.

Belongs here: counting records, and finding the counters that belong to a committed offset. Does
not: clocks, nor assigning time to partitions (`meter`). `Work.java` has the same rule.

The planner ignores a report if its records grow by more than the committed offset. A client may
commit before the application has processed the records (aiokafka's `getmany`) or long after, and it
may read a record again. So a report has the counters of the moment at which the application had
processed as many records as the offset shows, less the largest lead of commits over the work.
"""

from typing import Final, NamedTuple

#: Maximum number of earlier states per partition; then every other one is removed.
_KEPT: Final = 64
#: Seconds. Time without a record is summed over this period before it is squared. Longer than the
#: time between two samples, so that many short batches do not make an interval narrow.
_BLOCK_S: Final = 600.0


class Counters(NamedTuple):
    """Records, their seconds, and the sum of the squared seconds per record."""

    records: int
    busy: float
    squares: float


class Progress:
    """Counters of one partition.

    `commit` may be called on another thread than the other methods, which belong to the
    application's thread.
    """

    __slots__ = (
        "_block_s",
        "_block_since",
        "_committed",
        "_lead",
        "_left",
        "_states",
        "busy",
        "partition",
        "records",
        "reported",
        "squares",
        "topic",
    )

    def __init__(self, topic: str = "", partition: int = -1) -> None:
        self.topic, self.partition = topic, partition
        self.records, self.busy, self.squares = 0, 0.0, 0.0
        #: Number of records in the batch that are not counted yet.
        self._left = 0
        self._block_s, self._block_since = 0.0, float("-inf")
        #: Last committed offset; its largest lead over the number of records.
        self._committed = float("inf")
        self._lead = 0
        #: States since the reported one, in order.
        self._states: list[Counters] = []
        self.reported = Counters(0, 0.0, 0.0)

    def begin_batch(self, records: int) -> None:
        """Note that the batch contains this number of records."""
        self._left += records

    def take(self, records: int) -> None:
        """Count records of the batch, unless the application iterates over them again."""
        counted = min(records, self._left)
        self.records += counted
        self._left -= counted

    def end_batch(self) -> None:
        """Count the remaining records of the batch."""
        self.take(self._left)

    def spend(self, took_s: float, records: int) -> None:
        """Add the time of records that were timed together.

        The sum of squares grows as if each record took the mean time, and one of them also the
        rest. So it is right on average, and too large while the mean is unknown.
        """
        if records == 1:
            self.squares += took_s * took_s
        else:
            usual = self.busy / max(1, self.records - records)
            extra_s = took_s - records * usual
            self.squares += extra_s * extra_s + usual * (extra_s + took_s)
        self.busy += took_s

    def widen(self, took_s: float, now: float) -> None:
        """Widen the interval by time that may belong to this partition or to another.

        All such time may belong to this partition. So the times within `_BLOCK_S` are added up
        before they are squared, and the interval stays wide even after many batches.
        """
        if now - self._block_since > _BLOCK_S:
            self._block_s, self._block_since = 0.0, now
        self.squares += took_s * (2 * self._block_s + took_s)
        self._block_s += took_s

    def commit(self, offset: int, now: Counters) -> None:
        """Set `reported` to the counters that go with a committed offset.

        Parameters
        ----------
        offset
            The committed offset. If it went back, the comparison with offsets starts again.
        now
            The counters now, including the present record.
        """
        lead = offset - now.records
        if offset < self._committed:
            self._lead = lead
            self._states.clear()
        self._lead = max(self._lead, lead)
        self._committed = offset
        if self._states and self._states[-1].records == now.records:
            self._states.pop()
        if len(self._states) >= _KEPT:
            del self._states[::2]
        self._states.append(now)
        reach, state = offset - self._lead, self.reported
        while self._states and self._states[0].records <= reach:
            state = self._states.pop(0)
        if self._states and state.records < reach:
            state = _between(state, self._states[0], reach)
        before = self.reported
        if state.records >= before.records:
            self.reported = Counters(
                state.records,
                max(before.busy, state.busy),
                max(before.squares, state.squares),
            )


def _between(before: Counters, after: Counters, records: int) -> Counters:
    """Return the counters at a number of records between two states, in proportion."""
    share = (records - before.records) / (after.records - before.records)
    return Counters(
        records,
        before.busy + share * (after.busy - before.busy),
        before.squares + share * (after.squares - before.squares),
    )
