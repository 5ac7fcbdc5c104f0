"""Counters of one partition's processed records, now and at earlier offsets.

Belongs here: counting each record once, and finding the counters that belong to a committed offset.
Belongs elsewhere: clocks, and assigning time to partitions (`meter`).

The planner ignores a report in which the number of records has grown by more than the committed
offset. But a client may commit an offset before the application has processed the records
(aiokafka's `getmany`) or long after, and may read a record twice. So this module counts a record
only once, unless the committed offset decreases. For a committed offset, it reports the counters of
the moment when the application had processed all records before that offset.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

#: Maximum number of earlier states of the counters per partition. If there are more, every second
#: state is removed.
_KEPT: Final = 64
#: Seconds. Times that cannot be assigned to a record are added over this period, and the sum is
#: squared. As a result, many short batches make the confidence interval as wide as one long batch.
#: The period is longer than the time between two samples.
_BLOCK_S: Final = 600.0


class WorkAtOffset(NamedTuple):
    """The counters at the time when the application had received all records before an offset."""

    offset: int
    records: int
    busy: float
    squares: float


class Progress:
    """Counters of one partition: records, their processing time, and the sum of squared times.

    `commit` may be called on any thread, the other methods only on the application's thread.
    """

    __slots__ = (
        "_ahead",
        "_block_s",
        "_block_since",
        "_committed",
        "_last",
        "_left",
        "_missing",
        "_newest",
        "_replays",
        "_restarted",
        "_resumed",
        "_states",
        "busy",
        "next",
        "partition",
        "reported",
        "squares",
        "topic",
    )

    def __init__(self, topic: str = "", partition: int = -1) -> None:
        self.topic, self.partition = topic, partition
        #: Offset after the last counted record.
        self.next = -1
        #: `next` minus the number of counted records.
        self._missing = -1
        self.busy = 0.0
        self.squares = 0.0
        #: Number of records in the batch that are not counted yet, and the batch's last offset.
        self._left, self._last = 0, -1
        self._block_s, self._block_since = 0.0, float("-inf")
        #: Whether the committed offset has decreased. Records read again are then counted again.
        self._replays = False
        #: Offset of the first record after the last commit, if a gap in the offsets precedes this
        #: record.
        self._resumed = -1
        #: Offset from which records have been counted again since the last commit; -1: none.
        self._restarted = -1
        #: Last committed offset, and the maximum difference between a committed offset and the
        #: offset that the application had reached at that time.
        self._committed = -1
        self._ahead = 0
        self._newest = self.reported = WorkAtOffset(-1, 0, 0.0, 0.0)
        self._states: list[WorkAtOffset] = []

    @property
    def records(self) -> int:
        """Number of counted records."""
        return self.next - self._missing

    def take(self, offset: int) -> None:
        """Count a record, unless it was counted before."""
        if offset < self.next:
            if not self._replays:
                return
            self._go_back(offset)
        self._resume(offset)
        self._missing += offset - self.next
        self.next = offset + 1
        if self._left:
            self._left -= 1

    def take_all(self, records: Sequence[Any], offset_of: Callable[[Any], int]) -> None:
        """Count records, unless they were counted before."""
        count = len(records)
        if count and offset_of(records[-1]) == self.next + count - 1:
            self.next += count
            self._left = max(0, self._left - count)
        else:
            for record in records:
                self.take(offset_of(record))

    def begin_batch(
        self, records: Sequence[Any], start: int, stop: int, offset_of: Callable[[Any], int]
    ) -> None:
        """Add `records[start:stop]`, at least one record, to the batch without counting them."""
        first = offset_of(records[start])
        if first < self.next and self._replays:
            self._go_back(first)
        self._resume(first)
        counted = max(self.next, self._last + 1) if self._left else self.next
        if first >= counted:
            self._left += stop - start
        else:
            self._left += sum(offset_of(records[at]) >= counted for at in range(start, stop))
        self._last = offset_of(records[stop - 1])

    def end_batch(self) -> None:
        """Count the records of the batch that are not counted yet."""
        if self._left:
            self._missing += self._last + 1 - self.next - self._left
            self.next, self._left = self._last + 1, 0

    def spend(self, took_s: float, records: int) -> None:
        """Add the time of records that were timed as one group.

        The time of each record in the group is unknown. The sum of squares grows as if one record
        deviated from the mean time so far, and all other records took exactly the mean. On average
        this is right. Before there is a mean, the sum is too large.
        """
        if records == 1:
            self.squares += took_s * took_s
        else:
            usual = self.busy / max(1, self.records - records)
            extra_s = took_s - records * usual
            self.squares += extra_s * extra_s + usual * (extra_s + took_s)
        self.busy += took_s

    def widen(self, took_s: float, now: float) -> None:
        """Make the confidence interval wider, for time that may belong to this partition.

        The times of several batches could even belong to a single record. So the times within
        `_BLOCK_S` are added before they are squared. The interval thus stays wide even after many
        batches.
        """
        if now - self._block_since > _BLOCK_S:
            self._block_s, self._block_since = 0.0, now
        self.squares += took_s * (2 * self._block_s + took_s)
        self._block_s += took_s

    def _resume(self, offset: int) -> None:
        if offset > self.next and self.records == self._newest.records:
            self._resumed = offset

    def _go_back(self, offset: int) -> None:
        """Continue at an earlier offset: records read twice count twice in the reported number."""
        self._missing = offset - self.reported.records
        self.next = self._restarted = offset
        self._resumed = -1
        self._replays = False

    def commit(self, offset: int, busy: float, squares: float) -> None:
        """Set `reported` to the counters that belong to a committed offset.

        Parameters
        ----------
        offset
            The committed offset. If it is lower than the offset of the last commit, the stored
            states of the counters are removed.
        busy, squares
            The present values of these counters, including the time of the present record so far.
        """
        now = self._state(busy, squares)
        if offset < self._committed:
            self._replays = True
            self._ahead = 0
            self._states.clear()
            now = now._replace(offset=offset)
            self._report(now)
        else:
            self._follow(offset, now)
            if offset > self._committed:
                self._replays = False
        self._committed = offset
        self._newest = now

    def _state(self, busy: float, squares: float) -> WorkAtOffset:
        following = self.next
        records = following - self._missing
        if records == self._newest.records:
            following = max(following, self._resumed)
        return WorkAtOffset(following, records, busy, squares)

    def _follow(self, offset: int, now: WorkAtOffset) -> None:
        """Set `reported` to the counters at a committed offset.

        If earlier commits were up to N offsets ahead of the application, this commit may be, too.
        So use the counters at the offset that is N lower.
        """
        if self._restarted >= 0:
            self._newest = self.reported._replace(offset=self._restarted)
            self._restarted = -1
            self._states = [self._newest]
        if self._newest.offset < self._resumed < now.offset:
            self._newest = self._newest._replace(offset=self._resumed)
            self._states.append(self._newest)
        # New records may have offsets before the last committed offset. If so, that commit was
        # ahead of the application.
        if now.records > self._newest.records:
            self._ahead = max(self._ahead, self._committed - self._newest.offset)
        if len(self._states) >= _KEPT:
            del self._states[1:-1:2]
        self._states.append(now)
        reach = offset - self._ahead
        state = self.reported
        while self._states and self._states[0].offset <= reach:
            state = self._states.pop(0)
        if self._states and state.offset < reach:
            state = _between(state, self._states[0], reach)
        self._report(state)

    def _report(self, state: WorkAtOffset) -> None:
        before = self.reported
        self.reported = WorkAtOffset(
            state.offset,
            max(before.records, state.records),
            max(before.busy, state.busy),
            max(before.squares, state.squares),
        )


def _between(before: WorkAtOffset, after: WorkAtOffset, offset: int) -> WorkAtOffset:
    """Return the counters at an offset between two states, by linear interpolation."""
    records = after.records - before.records
    share = (offset - before.offset) / (after.offset - before.offset)
    part = records * (offset - before.offset) // (after.offset - before.offset)
    return WorkAtOffset(
        offset,
        before.records + part,
        before.busy + share * (after.busy - before.busy),
        before.squares + share * (after.squares - before.squares),
    )
