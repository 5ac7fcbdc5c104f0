"""Looks at one group: offsets and owners of its partitions at a sequence of moments.

Belongs here: the arrays that everything else works on, and what happened from one look to the next.
Does not: where looks come from (`fairlead.kafka`, `lines`), nor what they mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

#: An offset that is not known, or not committed.
NONE = -1
#: No log ends beyond it.
_FURTHEST = 2.0**62
#: A step is short that lasts less than this share of the shorter of its neighbours.
_SHORT = 0.25
#: Records between a commit and the stable end at most: the marker that ended a transaction.
_MARKER = 1
#: What `read_commits` asks of looks.
_BY_PARTITION = ("in_one_log", "arrived", "position", "lag", "advanced", "last_committed")


def median(values: Float64) -> float:
    """Return the median of some values; numpy's own takes ten times as long where they are few.

    Examples
    --------
    >>> median(np.array([9.0, 1.0, 2.0])), median(np.array([9.0, 1.0, 2.0, 3.0]))
    (2.0, 2.5)
    """
    ordered = np.sort(values)
    return float((ordered[(values.size - 1) // 2] + ordered[values.size // 2]) / 2)


@dataclass(frozen=True, eq=False)
class Looks:
    """What was seen of a group: L looks at P partitions, of M members.

    Partitions stand as in `assignors.problem.Problem`: topic by topic, ascending.

    Parameters
    ----------
    at
        Seconds since the epoch, strictly ascending, float64 of shape (L,). The last is now.
    begin, end
        First offset of the log and the one behind its last, int64 of shape (L, P); -1: not known,
        as for a partition that did not exist yet.
    committed
        int64 of shape (L, P); -1: none.
    members
        Names of all who ever owned something, and of all who are members now.
    owner
        int32 of shape (L, P): index into `members`, -1: nobody, or not known.
    latest
        Whether consumers without a commit start at the log's end (`auto.offset.reset`).
    stable_end
        Last stable offset, int64 of shape (L, P): records at and after it belong to an open
        transaction. -1: not read. None: it never was.
    """

    at: Float64
    begin: Int64
    end: Int64
    committed: Int64
    members: tuple[str, ...]
    owner: Int32
    latest: bool = False
    stable_end: Int64 | None = None

    def __len__(self) -> int:
        """Return the number of looks."""
        return int(self.at.size)

    @property
    def now(self) -> float:
        """When the last look was taken, seconds since the epoch."""
        return float(self.at[-1])

    @property
    def partitions(self) -> int:
        """P."""
        return int(self.end.shape[1])

    @cached_property
    def seconds(self) -> Float64:
        """Length of each step from a look to the next, float64 of shape (L - 1,)."""
        return np.diff(self.at)

    @cached_property
    def step(self) -> float:
        """The usual length of a step: the median, in seconds; 0 with one look."""
        return median(self.seconds) if len(self) > 1 else 0.0

    @classmethod
    def beside(cls, groups: "Sequence[Looks]") -> "Looks":
        """Lay the looks at several groups side by side, which were taken at the same times.

        Members stand one group's behind another's, whatever their names; a group without any has
        one who owns nothing.
        """
        if len(groups) == 1 and groups[0].members:
            return groups[0]
        names = [group.members or ("",) for group in groups]
        firsts = np.cumsum([0, *map(len, names)])
        owners = [
            np.where(group.owner >= 0, group.owner + np.int32(first), group.owner)
            for group, first in zip(groups, firsts.tolist(), strict=False)
        ]
        begin, end, committed = (
            np.concatenate([getattr(group, name) for group in groups], axis=1)
            for name in ("begin", "end", "committed")
        )
        stable = [group.stable_end for group in groups]
        return replace(
            groups[0],
            begin=begin,
            end=end,
            committed=committed,
            members=tuple(chain.from_iterable(names)),
            owner=np.concatenate(owners, axis=1),
            stable_end=None
            if all(ends is None for ends in stable)
            else np.concatenate(
                [
                    np.full_like(group.end, NONE) if ends is None else ends
                    for group, ends in zip(groups, stable, strict=True)
                ],
                axis=1,
            ),
        )

    def part(self, group: "Looks", columns: slice) -> "Looks":
        """Return a group's own looks, with what is known already of its columns beside others."""
        if group is not self:  # as `cached_property` does
            vars(group).update({name: vars(self)[name][:, columns] for name in _BY_PARTITION})
            vars(group).update(seconds=self.seconds, step=self.step)
        return group

    def last(self, seconds: float, least: int) -> "Looks":
        """Return the looks of the last so many seconds, and `least` of them where there are.

        Examples
        --------
        >>> one = np.zeros((4, 1), np.int64)
        >>> looks = Looks(np.array([0.0, 60, 120, 180]), one, one, one, (), one.astype(np.int32))
        >>> len(looks.last(60, 1)), len(looks.last(60, 3))
        (2, 3)
        """
        first = int(np.searchsorted(self.at, self.now - seconds - 1e-6))
        first = max(0, min(first, len(self) - least))
        return self._at(slice(first, None)) if first else self

    def until(self, look: int) -> "Looks":
        """Return the looks up to one, which is among them."""
        return self._at(slice(None, look + 1))

    def bridged(self) -> "Looks":
        """Return these looks with what a single look did not see filled in from its neighbours.

        A partition without a leader for some seconds was not made anew. What the last look alone
        did not see went on as before, unless that is half of all. Where a look has no owners at
        all, whoever owned a partition before and after it owned it then.

        Examples
        --------
        >>> ends = np.array([[10], [-1], [30], [-1]])
        >>> at, none = np.array([0.0, 60, 120, 180]), np.zeros((4, 1), np.int64)
        >>> looks = Looks(at, none, ends, none, (), none.astype(np.int32)).bridged()
        >>> looks.end.ravel().tolist()
        [10, 20, 30, -1]
        >>> owner = np.array([[0], [-1], [0], [-1]], np.int32)
        >>> Looks(at, none, none, none, ("a",), owner).bridged().owner.ravel().tolist()
        [0, 0, 0, -1]
        """
        seen = self.end >= 0
        bridged = self._with_owners()
        if seen.all():
            return bridged
        alone = np.zeros_like(seen)
        alone[1:-1] = ~seen[1:-1] & seen[:-2] & seen[2:] & (self.end[2:] >= self.end[:-2])
        went_on = seen[-3:-2] & seen[-2:-1] & (self.end[-2:-1] >= self.end[-3:-2])
        lost = ~seen[-1] & went_on.any(axis=0)  # none where there are no three looks
        alone[-1] = lost & (2 * lost.sum() < lost.size)
        if not alone.any():
            return bridged
        look, partition = np.nonzero(alone)
        after = np.where(look + 1 < len(self), look + 1, look - 1)
        before = np.minimum(look, after) - 1
        share = (self.at[look] - self.at[before]) / (self.at[after] - self.at[before])

        def between(values: Int64) -> Int64:
            first, last = values[before, partition], values[after, partition]
            grown = np.clip(share * (last - first), 0.0, np.maximum(_FURTHEST - first, 0.0))
            filled: Int64 = np.where(first >= 0, first + grown.astype(np.int64), first)
            return filled

        end, begin, committed = self.end.copy(), self.begin.copy(), self.committed.copy()
        known = committed[look, partition]
        begin[look, partition] = self.begin[look - 1, partition]
        committed[look, partition] = np.where(known >= 0, known, between(self.committed))
        end[look, partition] = np.maximum(between(self.end), known)
        return replace(bridged, begin=begin, end=end, committed=committed)

    def _with_owners(self) -> "Looks":
        unowned = np.flatnonzero((self.owner[1:-1] < 0).all(axis=1)) + 1
        if not unowned.size:
            return self
        owner = self.owner.copy()
        before, after = owner[unowned - 1], owner[unowned + 1]
        owner[unowned] = np.where(before == after, before, NONE)
        return replace(self, owner=owner)

    def spaced(self) -> "Looks":
        """Return these looks without those that another one follows much sooner than is usual.

        A planning run may look two seconds after the look of the minute: steps that short say how
        the clients' commits fall, and not how fast anybody reads.

        Examples
        --------
        >>> at, one = np.array([0.0, 60, 62, 120, 122, 180]), np.zeros((6, 1), np.int64)
        >>> Looks(at, one, one, one, (), one.astype(np.int32)).spaced().at.tolist()
        [0.0, 62.0, 122.0, 180.0]
        """
        follows = np.concatenate((self.seconds, [np.inf]))
        before = np.concatenate(([np.inf], self.seconds))
        usual = np.minimum(before, np.concatenate((follows, [np.inf]))[1:])
        kept = (follows >= _SHORT * usual) | np.isinf(usual)
        return self if kept.all() else self._at(kept)

    def _at(self, chosen: slice | Mask) -> "Looks":
        return replace(
            self,
            at=self.at[chosen],
            begin=self.begin[chosen],
            end=self.end[chosen],
            committed=self.committed[chosen],
            owner=self.owner[chosen],
            stable_end=None if self.stable_end is None else self.stable_end[chosen],
        )

    @cached_property
    def in_one_log(self) -> Mask:
        """Looks since a partition's log was last another one, bool of shape (L, P).

        A log whose end went back, or that was not there, is not the log of now: it was made anew or
        lost records in an unclean election. Nothing is counted across that.
        """
        whole = self.end >= 0
        follows = whole[1:] & whole[:-1] & (self.end[1:] >= self.end[:-1])
        if follows.all():
            return whole
        # From the last look backwards, as far as every step follows.
        linked = np.logical_and.accumulate(follows[::-1], axis=0)[::-1]
        return np.concatenate((linked & whole[-1], whole[-1:]))

    @cached_property
    def arrived(self) -> Int64:
        """Records that arrived in each step, int64 of shape (L - 1, P); 0 where not known."""
        counted = self.in_one_log[:-1]
        return np.where(counted, np.diff(self.end, axis=0), 0).astype(np.int64)

    @cached_property
    def last_committed(self) -> Int64:
        """The newest commit up to each sample, in the present log, int64 of shape (L, P); -1: none.

        A commit that expires, or cannot be read for a moment, still says where its consumer is.
        """
        known = self.committed >= 0
        if known.all():
            return self.committed
        seen = known & self.in_one_log
        last = np.maximum.accumulate(np.where(seen, np.arange(len(self))[:, None], -1), axis=0)
        filled = np.take_along_axis(self.committed, np.maximum(last, 0), axis=0)
        return np.where(known | (last < 0), self.committed, filled)

    @cached_property
    def position(self) -> Int64:
        """Where the group stands: at its commit, or where it would start without one.

        int64 of shape (L, P); -1 where the log is not known. Never beyond the log's end, nor below
        its begin: what is gone cannot be read.
        """
        start = self.end if self.latest else np.where(self.begin >= 0, self.begin, self.end)
        committed = self.last_committed
        stands = np.where(committed >= 0, np.maximum(committed, self.begin), start)
        return np.where(self.end >= 0, np.minimum(stands, self.end), NONE).astype(np.int64)

    @cached_property
    def in_transaction(self) -> Mask:
        """Whether an open transaction holds back all that waits, bool of shape (L, P).

        The commit is at the stable end, and two looks have seen the same stable end. Consumers
        with `isolation.level=read_committed` read no further. Whether the group's do is not known.

        Examples
        --------
        >>> at, none, owner = np.arange(3.0), np.zeros((3, 1), np.int64), np.zeros((3, 1), np.int32)
        >>> end, stands = np.array([[5], [7], [9]]), np.array([[5], [5], [5]])
        >>> looks = Looks(at, none, end, stands, ("a",), owner, stable_end=stands)
        >>> looks.in_transaction.ravel().tolist(), looks.lag.ravel().tolist()
        ([False, True, True], [0, 0, 0])
        """
        if self.stable_end is None:
            return np.zeros(self.end.shape, dtype=bool)
        stable = np.where(self.in_one_log, self.stable_end, NONE)
        readable = stable - self.position
        held: Mask = (stable >= 0) & (self.end > stable) & (readable >= 0) & (readable <= _MARKER)
        held[:1] = False
        held[1:] &= np.maximum.accumulate(stable, axis=0)[:-1] == stable[1:]
        return held

    @cached_property
    def readable_end(self) -> Int64:
        """The end of what consumers can read, int64 of shape (L, P).

        The end of the log, or where an open transaction began that still holds back the group at
        this look or a later one.
        """
        held = self.in_transaction
        if self.stable_end is None or not held.any():
            return self.end
        stable = np.where(held, self.stable_end, np.iinfo(np.int64).max)
        return np.minimum(self.end, np.minimum.accumulate(stable[::-1], axis=0)[::-1])

    @cached_property
    def lag(self) -> Int64:
        """Records behind that can be read, int64 of shape (L, P), 0 if the log is not known."""
        lag: Int64 = np.maximum(self.readable_end - self.position, 0).astype(np.int64)
        return lag

    @cached_property
    def advanced(self) -> Int64:
        """Records that commits advanced by in each step, int64 of shape (L - 1, P).

        Without those that the log lost before they were read.
        """
        known = self.in_one_log & (self.last_committed >= 0)
        advance = self.position[1:] - np.maximum(self.position[:-1], self.begin[1:])
        return np.where(known[1:] & known[:-1], np.maximum(advance, 0), 0).astype(np.int64)

    @cached_property
    def committed_again(self) -> Mask:
        """Whether the commit changed in each step, forwards or back, bool of shape (L - 1, P)."""
        committed = self.last_committed
        changed: Mask = (np.diff(committed, axis=0) != 0) & (committed[1:] >= 0)
        return changed & self.in_one_log[:-1]

    def time_lag(self, behind: Float64, rates: Float64) -> Float64:
        """How long ago the log ended where somebody so many records behind now stands.

        Parameters
        ----------
        behind
            Records, float64 of shape (P,).
        rates
            Records a second, for what lies before the first look; float64 of shape (P,).

        Returns
        -------
        Seconds, float64 of shape (P,): interpolated between looks; 0 where nothing is behind.
        """
        if not (behind > 0).any():
            return np.zeros(self.partitions)
        stands = self.end[-1] - behind
        known = self.in_one_log
        passed = known & (self.end <= stands)
        before = passed.sum(axis=0) + (~known).sum(axis=0) - 1
        columns = np.arange(self.partitions)
        inside = passed.any(axis=0)
        lower = np.maximum(before, 0)
        upper = np.minimum(lower + 1, len(self) - 1)
        first, last = self.end[lower, columns], self.end[upper, columns]
        share = (stands - first) / np.maximum(last - first, 1)
        reached = self.at[lower] + share * (self.at[upper] - self.at[lower])
        oldest = np.minimum((~known).sum(axis=0), len(self) - 1)
        missing = np.maximum(self.end[oldest, columns] - stands, 0)
        # Where nothing arrives any more nobody can say how old it is: as old as the first look.
        filling = rates > 0
        before_s = np.where(filling, missing / np.where(filling, rates, 1.0), 0.0)
        extrapolated = self.at[oldest] - before_s
        ages = self.now - np.where(inside, reached, extrapolated)
        return np.where(behind > 0, np.maximum(ages, 0.0), 0.0)
