"""How far behind each partition of a group is, how fast it fills and drains, whether it is healthy.

Belongs here: lag, rates, time lag and status from a group's looks. Does not: reading looks
(`archive`), doing this for many groups (`fairlead.spark.lag`), nor planning
(`fairlead.domain.analysis`).

This module is the one definition of a group's lag. Lag is KAFKA-5337's, of the records that are
still there: with a commit, end - committed; without one and reset policy `latest`, 0; without one
otherwise, end - begin; never below 0. It follows that

- records that were deleted before they were read are not lag: they are `lost`, how many and when;
- a commit beyond the log's end, after an unclean election or on a re-created topic, is lag 0;
- in a compacted log, offsets count, not the records that remain: Kafka's own measure;
- a partition that does not exist any more, or whose offsets could not be read, has no lag.

A group has left a topic if it has commits there but its members subscribe to other topics alone
(`left_topics`). The partitions of such a topic have no status and are not part of the group's lag.

Records are lost in a look if the log's start has passed the commit since the look before. In the
first look, all that lies between commit and start counts: when it was deleted, nobody saw. Records
that were deleted and passed over by the consumers between two looks are not seen.

Rates and status look back at earlier looks. What these cannot tell is unknown, never a guess.
Status follows Burrow's rules, with looks for commits; the first that holds:

- DATA_LOSS: a look of the last half hour (`LOST_WITHIN_S`) saw that records were lost, more than
  the partition's lag at rest.
- REWIND: the committed offset went back since the look before.
- OK: there is no more lag than at rest (`fairlead.domain.analysis.commits`).
- STOP: nobody in the group committed anything for the group's patience, and there was lag
  meanwhile.
- STALL: the same of this partition, for its own patience, while others of the group were committed.
- WARN: lag grew for that long and never fell, although the partition was committed.
- OK: otherwise, also where looks are too few to tell.

Patience is three usual commit intervals, and `STALLED_AFTER_S` at least. A group's usual interval
is the median of its partitions'; a partition's own patience is never below its group's.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fairlead.domain.analysis.arrivals import arrival_rates
from fairlead.domain.analysis.commits import at_rest
from fairlead.domain.analysis.looks import Float64, Int64, Looks, Mask
from fairlead.domain.analysis.thresholds import SEVERAL

STALLED_AFTER_S: Final = 60.0
"""The least time without a commit that is a stall, where every step between looks has a commit."""
SMOOTHING_S: Final = 900.0
"""Time constant of the rates: what happened so long ago counts 1/e of what happens now."""
LOST_WITHIN_S: Final = 1800.0
"""Seconds. How long a loss is reported after the first look that saw it: half of `LAG_HISTORY`, so
that the oldest look of an hour is not taken for the first one that saw a loss."""
STATUSES: Final = ("OK", "WARN", "STALL", "STOP", "REWIND", "DATA_LOSS")

LAG_HISTORY: Final = timedelta(hours=1)
LAG_SAMPLES: Final = 2
"""Rates and statuses look back so far, and at so many looks before it where there are fewer."""

#: Partitions measured at once: what is computed on the way stays small beside the looks.
_AT_ONCE: Final = 2_000


@dataclass(frozen=True, eq=False)
class PartitionLag:
    """What is known of P partitions at the last look.

    Parameters
    ----------
    readable
        Whether it could be read; of the others nothing is known. Bool of shape (P,).
    lag
        Records behind, int64 of shape (P,).
    lost
        Records that were deleted before they were read, int64 of shape (P,).
    lost_at
        When a look first saw the newest of them lost, seconds since the epoch, float64 of shape
        (P,); NaN: none were lost.
    arrival_rate, consumption_rate
        Records a second, float64 of shape (P,); NaN: unknown.
    time_lag_s
        How long ago the log ended where the group stands now, seconds, float64 of shape (P,); NaN:
        unknown.
    status
        Index into `STATUSES`, int64 of shape (P,).
    """

    readable: Mask
    lag: Int64
    lost: Int64
    lost_at: Float64
    arrival_rate: Float64
    consumption_rate: Float64
    time_lag_s: Float64
    status: Int64


def left_topics(topics: Iterable[str], members: Collection[Collection[str]]) -> set[str]:
    """Return the topics that a group has left: commits remain, but no member subscribes.

    Parameters
    ----------
    topics
        Those that the group's members read or the group has committed.
    members
        The topics that each member subscribes to. If there are none, the group has no members, or
        its subscriptions are not known, and it has left nothing.

    Examples
    --------
    >>> left_topics(["clicks", "orders"], [["orders"], []]), left_topics(["clicks"], [])
    ({'clicks'}, set())
    """
    read = set[str]().union(*members)
    return set(topics) - read if read else set()


def partition_lag(
    looks: Looks, group_of: Int64 | None = None, *, lost_within_s: float = LOST_WITHIN_S
) -> PartitionLag:
    """Measure every partition of a group, or of several that were looked at together.

    Parameters
    ----------
    looks
        P partitions; owners do not matter.
    group_of
        Number of each partition's group, int64 of shape (P,); None: there is one group.
    lost_within_s
        Lost records count for so many seconds after the first look that saw them lost.

    Notes
    -----
    The arrival rate is the analysis's. The consumption rate is a time-aware exponentially weighted
    mean over the steps between looks: a step weighs as much as the decay covers it, whatever its
    length. Steps in which an offset went back are left out.

    `time_lag_s` is interpolated between the looks around the moment at which the log ended where
    the group stands now; before the first of them it is lag / `arrival_rate`; 0 without lag.
    """
    measured = [
        block.measured(still_s, usual_s)
        for block, still_s, usual_s in _blocks(looks, group_of, lost_within_s)
    ]
    return PartitionLag(
        readable=np.concatenate([part.readable for part in measured]),
        lag=np.concatenate([part.lag for part in measured]),
        lost=np.concatenate([part.lost for part in measured]),
        lost_at=np.concatenate([part.lost_at for part in measured]),
        arrival_rate=np.concatenate([part.arrival_rate for part in measured]),
        consumption_rate=np.concatenate([part.consumption_rate for part in measured]),
        time_lag_s=np.concatenate([part.time_lag_s for part in measured]),
        status=np.concatenate([part.status for part in measured]),
    )


def partition_statuses(looks: Looks) -> list[str]:
    """Return the statuses that a group's readable partitions have, each once, as `partition_lag`.

    Without the rest of what that measures.
    """
    found = [
        block.status(still_s, usual_s)[block.readable]
        for block, still_s, usual_s in _blocks(looks, None)
    ]
    return [STATUSES[status] for status in np.unique(np.concatenate(found))]


def _blocks(
    looks: Looks, group_of: Int64 | None, lost_within_s: float = LOST_WITHIN_S
) -> Iterator[tuple["_LookedAt", Float64, Float64]]:
    """Yield partitions in blocks, with how long their groups are still, and commit at intervals."""
    blocks = [
        _LookedAt(looks, slice(start, start + _AT_ONCE), lost_within_s)
        for start in range(0, max(looks.partitions, 1), _AT_ONCE)
    ]
    group_of = np.zeros(looks.partitions, np.int64) if group_of is None else group_of
    groups = int(group_of.max(initial=0)) + 1
    still_s = np.full(groups, np.inf)
    np.minimum.at(still_s, group_of, np.concatenate([block.still_s for block in blocks]))
    interval_s = np.concatenate([block.interval_s for block in blocks])
    usual_s = _median_by_group(interval_s, group_of, groups)
    for block in blocks:
        yield block, still_s[group_of[block.where]], usual_s[group_of[block.where]]


def _median_by_group(values: Float64, group_of: Int64, groups: int) -> Float64:
    """Return the upper median of each group's values that are known, float64 (groups,); else 0."""
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.lexsort((values[known], group_of[known]))]
    counts = np.bincount(group_of[known], minlength=groups)
    middle = np.cumsum(counts) - counts + counts // 2
    medians = np.zeros(groups)
    medians[counts > 0] = values[order[middle[counts > 0]]]
    return medians


def _patience(interval_s: Float64) -> Float64:
    """Return for how long commits with a usual interval may stay out, seconds."""
    return np.maximum(SEVERAL * interval_s, STALLED_AFTER_S)


class _LookedAt:
    """Some partitions at L looks; every array is of shape (L, partitions) unless it says else."""

    def __init__(self, looks: Looks, where: slice, lost_within_s: float) -> None:
        self.where = where
        if looks.partitions > _AT_ONCE:  # else these are all, with what was derived of them before
            values = {field.name: getattr(looks, field.name) for field in fields(looks)}
            by_partition: dict[str, Any] = {
                name: value[:, where]
                for name, value in values.items()
                if isinstance(value, np.ndarray) and value.ndim > 1
            }
            looks = replace(looks, **by_partition)
        self._begin, self._end, self._committed = looks.begin, looks.end, looks.committed
        self._looks = looks
        self._at = np.broadcast_to(looks.at[:, None], self._end.shape)
        self._now = looks.now
        self._readable = (self._begin >= 0) & (self._end >= 0)
        self._lag = looks.lag
        # The look before at which each could be read, -1: there is none; None: the one before it.
        self._before: Int64 | None = None
        self._steps: Mask = np.broadcast_to(np.arange(len(looks))[:, None] > 0, self._end.shape)
        if not self._readable.all():
            place = np.where(self._readable, np.arange(len(looks))[:, None], -1)
            earlier = np.maximum.accumulate(place, axis=0)[:-1]
            self._before = np.concatenate((np.full_like(place[:1], -1), earlier))
            self._steps = self._readable & (self._before >= 0)
        self._step_s: Float64 = self._at - self._prior(self._at)
        self._rest = self._lag_at_rest(looks)
        self._lost, self._lost_at = self._losses(lost_within_s)
        self._moved: Mask = self._steps & (self._committed != self._prior(self._committed))
        self._still_s = self._silence()
        self.interval_s = self._interval()

    @property
    def readable(self) -> Mask:
        """Whether each partition could be read, bool of shape (partitions,)."""
        readable: Mask = self._readable[-1]
        return readable

    @property
    def _counted(self) -> Mask:
        """The steps from one commit to another."""
        return self._steps & (self._committed >= 0) & (self._prior(self._committed) >= 0)

    @property
    def still_s(self) -> Float64:
        """For how long nothing has been committed, seconds; infinite where it cannot be read."""
        return np.where(self._readable[-1], self._still_s, np.inf)

    def measured(self, group_still_s: Float64, group_interval_s: Float64) -> PartitionLag:
        """Return what is known of the partitions.

        Parameters
        ----------
        group_still_s
            For how long each partition's group has committed nothing, seconds.
        group_interval_s
            The group's usual commit interval, seconds.
        """
        arrivals = arrival_rates(self._looks)
        arrival_rate = np.where(arrivals.known, arrivals.per_s, np.nan)
        return PartitionLag(
            readable=self.readable,
            lag=self._lag[-1],
            lost=self._lost,
            lost_at=self._lost_at,
            arrival_rate=arrival_rate,
            consumption_rate=self._rate(self._committed, self._counted),
            time_lag_s=self._time_lag(arrival_rate),
            status=self.status(group_still_s, group_interval_s),
        )

    def _prior(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values at the look before; meaningless where there is none."""
        if self._before is None:
            return np.concatenate((values[:1], values[:-1]))
        return np.take_along_axis(values, np.maximum(self._before, 0), axis=0)

    def _rate(self, offsets: Int64, counted: Mask) -> Float64:
        """Average what was added a second over the steps that count, recent ones weighing more."""
        added = offsets - self._prior(offsets)
        usable = counted & (self._step_s > 0) & (added >= 0)
        step_s = np.where(usable, self._step_s, 1.0)
        age_s = self._now - self._at
        weight = np.exp(-age_s / SMOOTHING_S) * (1.0 - np.exp(-step_s / SMOOTHING_S))
        weight = np.where(usable, weight, 0.0)
        total = weight.sum(axis=0)
        weighed = (weight * np.where(usable, added, 0) / step_s).sum(axis=0)
        unknown = np.full_like(total, np.nan)
        rate: Float64 = np.divide(weighed, total, out=unknown, where=total > 0)
        return rate

    def _silence(self) -> Float64:
        """Return for how long each commit has been the same, seconds, of shape (partitions,)."""
        moved_at = np.where(self._moved, self._at, -np.inf).max(axis=0)
        first_at = np.where(self._readable, self._at, np.inf).min(axis=0)
        still_s: Float64 = self._now - np.where(np.isfinite(moved_at), moved_at, first_at)
        return still_s

    def _interval(self) -> Float64:
        """Return each partition's usual time between commits, seconds, of shape (partitions,).

        0: every step with something to commit has a commit; NaN: there is no commit. The silence
        since the last commit does not count: it is what the interval is held against.
        """
        until_last = np.logical_or.accumulate(self._moved[::-1], axis=0)[::-1]
        due = until_last & self._steps & ((self._prior(self._lag) > self._rest) | self._moved)
        commits = self._moved.sum(axis=0)
        due_s = np.where(due, self._step_s, 0.0).sum(axis=0)
        interval_s = np.where((due & ~self._moved).any(axis=0), due_s / np.maximum(commits, 1), 0.0)
        return np.where(commits > 0, interval_s, np.nan)

    def _lag_at_rest(self, looks: Looks) -> Int64:
        """Return the largest lag that each partition showed at rest, of shape (partitions,).

        Of the lag that counts records below the log's start, too: retention takes the marker of a
        transaction as well.
        """
        gone = (self._committed >= 0) & (self._committed < self._begin)
        if not gone.any():
            return at_rest(looks)
        return at_rest(replace(looks, begin=np.where(gone, self._committed, self._begin)))

    def _losses(self, within_s: float) -> tuple[Int64, Float64]:
        """Return the records lost, and when that was first seen; both of shape (partitions,).

        As `PartitionLag` has them.
        """
        passed = np.where(self._steps, self._prior(self._begin), 0)
        lost = np.maximum(self._begin - np.maximum(self._committed, passed), 0)
        counted = self._readable & (self._committed >= 0) & (self._now - self._at <= within_s)
        lost = np.where(counted, lost, 0)
        total = lost.sum(axis=0)
        total = np.where(total > self._rest, total, 0)
        seen_at = np.where(lost > 0, self._at, -np.inf).max(axis=0)
        return total, np.where(total > 0, seen_at, np.nan)

    def _time_lag(self, arrival_rate: Float64) -> Float64:
        lag, columns = self._lag[-1], np.arange(self._end.shape[1])
        position = self._end[-1] - lag
        passed = self._readable & (self._end <= position)
        ahead = self._readable & (self._end > position)
        last = len(self._end) - 1 - passed[::-1].argmax(axis=0)
        first = ahead.argmax(axis=0)
        inside = passed.any(axis=0) & ahead.any(axis=0) & (last < first)
        low, high = self._end[last, columns], self._end[first, columns]
        share = (position - low) / np.where(inside, high - low, 1)
        began, ended = self._at[last, columns], self._at[first, columns]
        seen = self._now - (began + share * (ended - began))
        filling = arrival_rate > 0
        guessed = np.where(filling, lag / np.where(filling, arrival_rate, 1.0), np.nan)
        return np.where(lag == 0, 0.0, np.where(inside, seen, guessed))

    def status(self, group_still_s: Float64, group_interval_s: Float64) -> Int64:
        """Return the statuses alone of what `measured` returns."""
        at, lag, rest = self._at, self._lag, self._rest
        group_patience_s = _patience(group_interval_s)
        patience_s = np.fmax(_patience(self.interval_s), group_patience_s)
        idle_at = np.where(self._readable & (lag <= rest), at, -np.inf).max(axis=0)
        behind = self._readable & (at > idle_at)
        behind_since = np.where(behind, at, np.inf).min(axis=0)
        grown = np.where(self._steps & behind & (at > behind_since), lag - self._prior(lag), 0)
        behind_s = self._now - behind_since
        rules = (
            ("DATA_LOSS", self._lost > 0),
            ("REWIND", (self._counted & (self._committed < self._prior(self._committed)))[-1]),
            ("OK", lag[-1] <= rest),
            ("STOP", np.minimum(behind_s, group_still_s) >= group_patience_s),
            ("STALL", np.minimum(behind_s, self._still_s) >= patience_s),
            ("WARN", (behind_s >= patience_s) & (grown.sum(axis=0) > 0) & (grown.min(axis=0) >= 0)),
        )
        found = np.full(lag.shape[1], STATUSES.index("OK"))
        for name, holds in reversed(rules):  # the first that holds is the status
            found[holds] = STATUSES.index(name)
        return found
