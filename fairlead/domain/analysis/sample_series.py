"""Offset samples of a group: offsets and owners of its partitions at several times.

Belongs here: the arrays of samples, and differences between samples. Belongs elsewhere: taking
samples (`fairlead.kafka`), and observations from them (`read`).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
#: Indices of partitions, members or steps.
Places = npt.NDArray[np.intp]

#: Value of an unknown offset, a missing commit, or a missing owner.
NONE = -1
#: Interpolated offsets are limited to this, because int64 could overflow.
_FURTHEST = 2.0**62
#: A step (the time between two samples) is short if it is shorter than this share of the previous
#: step, and also shorter than this share of the next step.
_SHORT = 0.25
#: A commit is treated as equal to the last stable offset if it is lower by at most this number: the
#: marker at the end of a transaction takes one offset.
_MARKER = 1


def median(values: Float64) -> float:
    """Return the median, ten times as fast as numpy does for a few values.

    Examples
    --------
    >>> median(np.array([9.0, 1.0, 2.0])), median(np.array([9.0, 1.0, 2.0, 3.0]))
    (2.0, 2.5)
    """
    ordered = np.sort(values)
    return float((ordered[(values.size - 1) // 2] + ordered[values.size // 2]) / 2)


def quotient(
    amounts: Float64 | Int64, divisors: Float64 | Int64, otherwise: Float64 | float
) -> Float64:
    """Divide amounts by divisors; where a divisor is not positive, return `otherwise`.

    Examples
    --------
    >>> quotient(np.array([6.0, 6.0]), np.array([2.0, 0.0]), np.inf).tolist()
    [3.0, inf]
    """
    positive = divisors > 0
    return np.where(positive, amounts / np.where(positive, divisors, 1.0), otherwise)


@dataclass(frozen=True, eq=False)
class SampleSeries:
    """L offset samples of P partitions, with owners among M members.

    Partitions are in the order of `assignors.problem.Problem`: by topic, ascending.
    """

    #: Times in seconds since the epoch, strictly ascending, float64 of shape (L,). The last one is
    #: regarded as now.
    at: Float64
    #: First offset of the log, and the offset after its last record, int64 of shape (L, P); -1:
    #: unknown, or the partition did not exist.
    begin: Int64
    end: Int64
    #: Committed offsets, int64 of shape (L, P); -1: none.
    committed: Int64
    #: Names of present members and of all earlier owners.
    members: tuple[str, ...]
    #: Owner as an index into `members`, int32 of shape (L, P); -1: no owner, or unknown.
    owner: Int32
    #: Whether consumers without a commit start at the end of the log (`auto.offset.reset`).
    latest: bool = False
    #: Last stable offset, int64 of shape (L, P): records from this offset on belong to an open
    #: transaction or come after its start. -1: unknown. None: always unknown.
    stable_end: Int64 | None = None

    def __len__(self) -> int:
        """Return the number of samples."""
        return int(self.at.size)

    @property
    def now(self) -> float:
        """Time of the last sample, seconds since the epoch."""
        return float(self.at[-1])

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return int(self.end.shape[1])

    @cached_property
    def seconds(self) -> Float64:
        """Seconds between consecutive samples, float64 of shape (L - 1,)."""
        return np.diff(self.at)

    @cached_property
    def step(self) -> float:
        """Median of `seconds`; 0 for one sample."""
        return median(self.seconds) if len(self) > 1 else 0.0

    def last(self, seconds: float, least: int) -> "SampleSeries":
        """Return the samples of the last `seconds` seconds, at least the `least` newest samples.

        Examples
        --------
        >>> one = np.zeros((4, 1), np.int64)
        >>> at, owner = np.array([0.0, 60, 120, 180]), one.astype(np.int32)
        >>> series = SampleSeries(at, one, one, one, (), owner)
        >>> len(series.last(60, 1)), len(series.last(60, 3))
        (2, 3)
        """
        first = int(np.searchsorted(self.at, self.now - seconds - 1e-6))
        first = max(0, min(first, len(self) - least))
        return self._at(slice(first, None)) if first else self

    def until(self, sample: int) -> "SampleSeries":
        """Return the samples up to and including index `sample`."""
        return self._at(slice(None, sample + 1))

    def bridged(self) -> "SampleSeries":
        """Return the samples, with values interpolated where a partition is missing in one sample.

        For example, if a partition has no leader for some seconds, its offsets cannot be read, but
        its log stays the same. If partitions are missing in the last sample, their values are
        extrapolated, unless half of the partitions are missing. If a sample has no owners at all, a
        partition that has the same owner in the previous and in the next sample gets this owner.

        Examples
        --------
        >>> ends = np.array([[10], [-1], [30], [-1]])
        >>> at, none = np.array([0.0, 60, 120, 180]), np.zeros((4, 1), np.int64)
        >>> series = SampleSeries(at, none, ends, none, (), none.astype(np.int32)).bridged()
        >>> series.end.ravel().tolist()
        [10, 20, 30, -1]
        >>> owner = np.array([[0], [-1], [0], [-1]], np.int32)
        >>> SampleSeries(at, none, none, none, ("a",), owner).bridged().owner.ravel().tolist()
        [0, 0, 0, -1]
        """
        seen = self.end >= 0
        bridged = self._with_owners()
        if seen.all():
            return bridged
        alone = np.zeros_like(seen)
        alone[1:-1] = ~seen[1:-1] & seen[:-2] & seen[2:] & (self.end[2:] >= self.end[:-2])
        went_on = seen[-3:-2] & seen[-2:-1] & (self.end[-2:-1] >= self.end[-3:-2])
        lost = ~seen[-1] & went_on.any(axis=0)  # all false with one or two samples
        alone[-1] = lost & (2 * lost.sum() < lost.size)
        if not alone.any():
            return bridged
        sample, partition = np.nonzero(alone)
        after = np.where(sample + 1 < len(self), sample + 1, sample - 1)
        before = np.minimum(sample, after) - 1
        share = (self.at[sample] - self.at[before]) / (self.at[after] - self.at[before])

        def between(values: Int64) -> Int64:
            first, last = values[before, partition], values[after, partition]
            grown = np.clip(share * (last - first), 0.0, np.maximum(_FURTHEST - first, 0.0))
            filled: Int64 = np.where(first >= 0, first + grown.astype(np.int64), first)
            return filled

        end, begin, committed = self.end.copy(), self.begin.copy(), self.committed.copy()
        known = committed[sample, partition]
        begin[sample, partition] = self.begin[sample - 1, partition]
        committed[sample, partition] = np.where(known >= 0, known, between(self.committed))
        end[sample, partition] = np.maximum(between(self.end), known)
        return replace(bridged, begin=begin, end=end, committed=committed)

    def _with_owners(self) -> "SampleSeries":
        unowned = np.flatnonzero((self.owner[1:-1] < 0).all(axis=1)) + 1
        if not unowned.size:
            return self
        owner = self.owner.copy()
        before, after = owner[unowned - 1], owner[unowned + 1]
        owner[unowned] = np.where(before == after, before, NONE)
        return replace(self, owner=owner)

    def spaced(self) -> "SampleSeries":
        """Return the samples; of two samples in quick succession, return only the second.

        A planning run may take a sample two seconds after the regular one. In so short a time, the
        number of records read depends on when consumers commit, not on how fast they are.

        Examples
        --------
        >>> at, one = np.array([0.0, 60, 62, 120, 122, 180]), np.zeros((6, 1), np.int64)
        >>> SampleSeries(at, one, one, one, (), one.astype(np.int32)).spaced().at.tolist()
        [0.0, 62.0, 122.0, 180.0]
        """
        follows = np.concatenate((self.seconds, [np.inf]))
        before = np.concatenate(([np.inf], self.seconds))
        usual = np.minimum(before, np.concatenate((follows, [np.inf]))[1:])
        chosen = (follows >= _SHORT * usual) | np.isinf(usual)
        return self if chosen.all() else self._at(chosen)

    def _at(self, chosen: slice | Mask) -> "SampleSeries":
        return replace(
            self,
            at=self.at[chosen],
            begin=self.begin[chosen],
            end=self.end[chosen],
            committed=self.committed[chosen],
            owner=self.owner[chosen],
            stable_end=None if self.stable_end is None else self.stable_end[chosen],
        )

    @property
    def owned_s(self) -> Float64:
        """Seconds since each partition's last sample with another owner, float64 of shape (P,).

        If all samples have the present owner, this is the time since the first sample.
        """
        same = np.logical_and.accumulate((self.owner == self.owner[-1])[::-1], axis=0)
        before = np.maximum(len(self) - 1 - same.sum(axis=0), 0)
        seconds: Float64 = self.now - self.at[before]
        return seconds

    @cached_property
    def in_one_log(self) -> Mask:
        """Whether the log of each partition was the same in each sample as now, bool (L, P).

        A log is regarded as new if it was missing in the previous sample, or if its end offset has
        decreased. The topic was then created again, or an unclean leader election lost records.
        """
        whole = self.end >= 0
        follows = whole[1:] & whole[:-1] & (self.end[1:] >= self.end[:-1])
        # Go back from the last sample to the last change of the log.
        linked = np.logical_and.accumulate(follows[::-1], axis=0)[::-1]
        return np.concatenate((linked & whole[-1], whole[-1:]))

    @cached_property
    def arrived(self) -> Int64:
        """Records that arrived between two samples, int64 of shape (L - 1, P); 0 if unknown."""
        counted = self.in_one_log[:-1]
        return np.where(counted, np.diff(self.end, axis=0), 0).astype(np.int64)

    @cached_property
    def last_committed(self) -> Int64:
        """The newest committed offset up to each sample, int64 of shape (L, P); -1: none.

        If a commit has expired or could not be read, the consumer's position is still given by the
        last known commit in the present log.
        """
        known = self.committed >= 0
        seen = known & self.in_one_log
        last = np.maximum.accumulate(np.where(seen, np.arange(len(self))[:, None], -1), axis=0)
        filled = np.take_along_axis(self.committed, np.maximum(last, 0), axis=0)
        return np.where(known | (last < 0), self.committed, filled)

    @cached_property
    def position(self) -> Int64:
        """Offset of the next record to be read: the commit or, without one, where consumers start.

        int64 of shape (L, P), within the log; -1 if the log is unknown.
        """
        start = self.end if self.latest else np.where(self.begin >= 0, self.begin, self.end)
        committed = self.last_committed
        stands = np.where(committed >= 0, np.maximum(committed, self.begin), start)
        return np.where(self.end >= 0, np.minimum(stands, self.end), NONE).astype(np.int64)

    @cached_property
    def in_transaction(self) -> Mask:
        """Whether an open transaction keeps a group from reading waiting records, bool (L, P).

        True if the commit is at the last stable offset, and if this offset has not changed since
        the previous sample. Only consumers with `isolation.level=read_committed` wait there.
        Whether the group has this setting is unknown.

        Examples
        --------
        >>> at, none, owner = np.arange(3.0), np.zeros((3, 1), np.int64), np.zeros((3, 1), np.int32)
        >>> end, stands = np.array([[5], [7], [9]]), np.array([[5], [5], [5]])
        >>> series = SampleSeries(at, none, end, stands, ("a",), owner, stable_end=stands)
        >>> series.in_transaction.ravel().tolist(), series.lag.ravel().tolist()
        ([False, True, True], [0, 0, 0])
        """
        if self.stable_end is None:
            return np.zeros(self.end.shape, dtype=bool)
        stable = np.where(self.in_one_log, self.stable_end, NONE)
        readable = stable - self.position
        held_back: Mask = (
            (stable >= 0) & (self.end > stable) & (readable >= 0) & (readable <= _MARKER)
        )
        held_back[:1] = False
        held_back[1:] &= np.maximum.accumulate(stable, axis=0)[:-1] == stable[1:]
        return held_back

    @cached_property
    def readable_end(self) -> Int64:
        """Offset after the last readable record, int64 of shape (L, P).

        If an open transaction blocks the group in this or in a later sample, this is the start of
        the transaction. Otherwise it is the end of the log.
        """
        held_back = self.in_transaction
        if self.stable_end is None or not held_back.any():
            return self.end
        stable = np.where(held_back, self.stable_end, np.iinfo(np.int64).max)
        return np.minimum(self.end, np.minimum.accumulate(stable[::-1], axis=0)[::-1])

    @cached_property
    def lag(self) -> Int64:
        """Number of readable records that are not committed, int64 (L, P); 0 if unknown."""
        lag: Int64 = np.maximum(self.readable_end - self.position, 0).astype(np.int64)
        return lag

    @cached_property
    def advanced(self) -> Int64:
        """By how many records the commits advanced between two samples, int64 of shape (L - 1, P).

        Records that were deleted before they were read are not counted.
        """
        known = self.in_one_log & (self.last_committed >= 0)
        advance = self.position[1:] - np.maximum(self.position[:-1], self.begin[1:])
        return np.where(known[1:] & known[:-1], np.maximum(advance, 0), 0).astype(np.int64)

    @cached_property
    def committed_again(self) -> Mask:
        """Whether the committed offset rose or fell between two samples, bool (L - 1, P)."""
        committed = self.last_committed
        changed: Mask = (np.diff(committed, axis=0) != 0) & (committed[1:] >= 0)
        return changed & self.in_one_log[:-1]

    def time_lag(self, behind: Float64, rates: Float64) -> Float64:
        """Return the age of each partition's oldest unread record, seconds, (P,); 0: no record.

        The time at which a record arrived is interpolated between the end offsets of samples.
        `behind`: number of unread records; `rates`: arrival rates before the first sample, records
        a second; both float64 of shape (P,).
        """
        stands, known, last = self.end[-1] - behind, self.in_one_log, len(self) - 1
        passed = (known & (self.end <= stands)).sum(axis=0)
        oldest = np.minimum(len(self) - known.sum(axis=0), last)
        lower = np.clip(oldest + passed - 1, oldest, last)
        upper, columns = np.minimum(lower + 1, last), np.arange(self.partitions)
        first = self.end[lower, columns]
        share = np.maximum(stands - first, 0) / np.maximum(self.end[upper, columns] - first, 1)
        reached = self.at[lower] + share * (self.at[upper] - self.at[lower])
        # If a record is older than the first sample and nothing arrives, its age is unknown, and
        # the age of the first sample is used.
        before = quotient(np.maximum(self.end[oldest, columns] - stands, 0), rates, 0.0)
        return np.where(behind > 0, self.now - reached + before, 0.0)
