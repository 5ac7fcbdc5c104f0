"""What a record of each partition takes, in records of the usual kind.

Belongs here: costs, from what members read while they were at their limit. Does not: who is at a
limit (`commits`), solving for costs (`cost_solver`), nor how fast members are (`capacities`).

A member at its limit spends all of a stretch on what it reads: with c what a record of a partition
takes, and s how much a member does a second, sum over p of c_p n_p = s dt. Kafka's clients read one
fetched chunk after the other, and plans move partitions: stretches hold partitions in ever other
shares, and each is an equation of its own. A member that was not at its limit is a bound: the sum
is at most s dt.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from assignors.problem import Problem
from fairlead.domain.judgement.commits import Commits
from fairlead.domain.judgement.looks import Float64, Looks, Mask

Places = npt.NDArray[np.intp]
Mix = tuple[Places, Float64]
"""What was read: partitions, intp of shape (N,), and records of each, float64 of shape (N,)."""

#: A stretch is so long at least, in seconds; longer ones average away what clients share out.
STRETCH_S: Final = 60.0
#: It goes on, up to so many times as long, while the next look finds the same mix.
_GOES_ON: Final = 5.0
#: Mixes are the same whose cosine is larger.
_ALIKE: Final = 0.998
#: So many equations of a member are remembered, for so long.
REMEMBERED: Final = 6
LASTS_S: Final = 7 * 86_400.0
#: A cost is known whose interval of nine in ten lies within a quarter of it.
NINE_IN_TEN: Final = 1.645
KNOWN: Final = 0.135
#: How far from a stretch's ends commits come, a standard deviation in seconds; of an unknown moment
#: in a step, as a share of the step.
BLUR_S: Final = 2.0
_ANYWHERE: Final = 0.29
#: No more equations than these at once, of each member those that say most.
_MOST: Final = 300
#: Nor with more coefficients in all.
_CELLS: Final = 4_000_000
#: To tell a slow member from what it reads, stretches are off by so much, and by so many seconds.
_OFF: Final = 0.03
_LATE_S: Final = 4.0
#: An explanation is told that leaves equations so much less wrong: three standard deviations.
_TELLS: Final = 9.0
#: Two explanations are told for so long at most.
_OPEN_S: Final = 7200.0
#: A member that was at its limit for longer when it is first seen may have been for any time.
_OPEN_UNKNOWN_S: Final = 2700.0
#: A partition that may have made several members slow takes so many times as long.
_DEAR: Final = 1.5
#: So many partitions are named.
_NAMED: Final = 3


class Equation(NamedTuple):
    """What a member read in a stretch.

    Parameters
    ----------
    member
        Its name.
    at
        When the stretch ended, seconds since the epoch.
    seconds
        Its length.
    limited
        Whether the member was at its limit; else this is a bound.
    partitions
        intp of shape (N,).
    records
        What was read of each, float64 of shape (N,); positive.
    blur_s
        How far from a stretch's ends its first and last commit came: a standard deviation.
    """

    member: str
    at: float
    seconds: float
    limited: bool
    partitions: Places
    records: Float64
    blur_s: float = BLUR_S


@dataclass(frozen=True, eq=False)
class Costs:
    """What records take.

    Parameters
    ----------
    value
        What decisions count with, in records of the usual kind, float64 of shape (P,): 1 where a
        cost does not deviate for certain.
    estimate
        The same without that, float64 of shape (P,).
    deviation
        Standard deviation of its logarithm, float64 of shape (P,); infinite where the cost is an
        assumption.
    equations
        What they rest on; stretches that commits blur are joined.
    """

    value: Float64
    estimate: Float64
    deviation: Float64
    equations: Sequence[Equation] = ()

    def known(self) -> Float64:
        """Return the costs that are known: low, estimate and high, float64 of shape (P, 3).

        The truth lies between nine times in ten; NaN where a cost is not known so well.
        """
        width = np.exp(NINE_IN_TEN * self.deviation)
        rows = np.stack((self.estimate / width, self.estimate, self.estimate * width), axis=1)
        rows[self.deviation > KNOWN] = np.nan
        return rows

    def told(self, problem: Problem) -> dict[str, dict[str, list[float]]]:
        """Return the costs that are known, by topic and partition: low, estimate and high."""
        told: dict[str, dict[str, list[float]]] = {}
        if not (self.deviation <= KNOWN).any():
            return told
        rows = self.known().round(4)
        for place in np.flatnonzero(~np.isnan(rows[:, 0])).tolist():
            topic, partition = problem.partition_name(place)
            told.setdefault(topic, {})[str(partition)] = rows[place].tolist()
        return told

    @property
    def equal(self) -> bool:
        """Whether all count as usual."""
        return bool((self.value == 1.0).all())

    def said(self, problem: Problem) -> str:
        """Return a sentence about expensive and cheap records, the furthest from usual first."""
        apart = np.flatnonzero(self.value != 1.0)
        furthest = apart[np.argsort(-np.abs(np.log(self.value[apart])), kind="stable")]
        names = [
            "{:.2g} times as long as usual in {}-{}".format(
                self.value[place], *problem.partition_name(place)
            )
            for place in furthest[:_NAMED].tolist()
        ]
        others = f" and in {apart.size - _NAMED:,} more" if apart.size > _NAMED else ""
        return f"Records take about {', '.join(names)}{others}."

    def of(self, partitions: Places, records: Float64) -> float:
        """Return what a record takes on average of so many of some partitions, shapes (N,)."""
        total = float(records.sum())
        return float((self.value[partitions] * records).sum()) / total if total > 0 else 1.0


def equations_of(
    looks: Looks, commits: Commits, objective_s: float = 60.0, *, bounds: bool = False
) -> list[Equation]:
    """Return the equations that looks hold, each member's in order of time.

    Parameters
    ----------
    looks
        Of the last hour, or so.
    commits
        What these say.
    objective_s
        Whoever wants to be in time by a few seconds cannot wait for stretches of minutes.
    bounds
        Whether bounds say something though nobody was at a limit: somebody was before.
    """
    least_s = min(STRETCH_S, 2.0 * objective_s)
    counted = commits.marked & commits.steady & ~commits.replayed
    if not bounds and not (counted & commits.busy).any():
        return []  # nobody was at a limit
    total = np.concatenate((np.zeros((1, looks.partitions)), commits.taken.cumsum(axis=0)))
    most = at_most(looks.partitions)
    busy = commits.busy & ~commits.held_up
    unusable = ~commits.steady | commits.replayed
    broken = np.concatenate((np.zeros((1, unusable.shape[1])), unusable.cumsum(axis=0)))
    at = looks.at.tolist()
    found: list[Equation] = []
    for member in np.flatnonzero(counted.any(axis=0)).tolist():
        ends = commits.marked[:, member].nonzero()[0] + 1
        stretches = _stretches(
            looks,
            member,
            ends,
            busy=busy[ends - 1, member],
            broken=broken[ends, member],
            read=total,
            least_s=least_s,
        )
        # When in its step a commit came nobody knows, where it comes less often than looks.
        held_s = max(looks.step, float(commits.held_back_s[member]))
        blur_s = _ANYWHERE * held_s if commits.late[member] else BLUR_S
        for limited, spans in zip((True, False), stretches, strict=True):
            for start, end in spans[-most:]:
                mine = np.flatnonzero(looks.owner[end] == member)
                records = total[end][mine] - total[start][mine]
                read, seconds = records > 0, at[end] - at[start]
                if read.any():
                    which = mine[read], records[read]
                    name = looks.members[member]
                    found.append(Equation(name, at[end], seconds, limited, *which, blur_s))
    return found


def at_most(partitions: int) -> int:
    """Return how many equations are solved at once."""
    return max(1, min(_MOST, _CELLS // max(partitions, 1)))


def _stretches(
    looks: Looks,
    member: int,
    ends: Places,
    *,
    busy: Mask,
    broken: Float64,
    read: Float64,
    least_s: float,
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return when a member was at its limit, and the newest time when it was at rest, if any.

    As the first and the last look of each stretch, in order of time.

    Parameters
    ----------
    ends
        Those of the looks behind which it had committed anew.
    busy, broken
        Whether it was at its limit then, and how many steps had been of no use until then.
    read
        Records of each partition that had been read until each look.
    least_s
        How long a stretch is at least, in seconds.
    """
    whole, first, last = broken[1:] == broken[:-1], busy[:-1], busy[1:]
    limited, at_rest = whole & first & last, whole & ~first & ~last
    gaps = np.diff(looks.at[ends]).tolist()
    goes_on = np.zeros(limited.size, dtype=bool)
    if limited.any():
        records = np.diff(read[np.ix_(ends, looks.owner[-1] == member)], axis=0)
        size = np.sqrt(np.square(records).sum(axis=1))
        same = (records[1:] * records[:-1]).sum(axis=1) > _ALIKE * size[1:] * size[:-1]
        goes_on[:-1] = same & limited[1:] & limited[:-1]

    def of(intervals: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield stretches of enough of these intervals, one after the other."""
        count, span, before = 0, 0.0, -2
        for interval in intervals:
            span = gaps[interval] + (span if abs(interval - before) == 1 else 0.0)
            count = count + 1 if span > gaps[interval] else 1
            before = interval
            if span >= least_s - 1.0 and not (goes_on[interval] and span < _GOES_ON * least_s):
                begin, end = sorted((interval, interval - count + 1))
                yield int(ends[begin]), int(ends[end + 1])
                span = 0.0

    backwards = at_rest.nonzero()[0][::-1].tolist()
    return list(of(limited.nonzero()[0].tolist())), list(islice(of(backwards), 1))


def lasting(old: Sequence[Equation], new: Sequence[Equation], since: float) -> list[Equation]:
    """Return the equations to go on with: what is remembered from before some looks, and theirs.

    Parameters
    ----------
    since
        When the oldest of the looks was taken, from which `new` are; seconds since the epoch.
    """
    return [equation for equation in old if since - LASTS_S <= equation.at <= since] + list(new)


def fewest(equations: Sequence[Equation], most: int = REMEMBERED) -> list[Equation]:
    """Return the few of each member that say most: of two much alike the older one goes."""
    members: dict[str, list[Equation]] = {}
    for equation in equations:
        members.setdefault(equation.member, []).append(equation)
    remembered: list[Equation] = []
    for mine in members.values():
        mine.sort(key=lambda equation: equation.at)
        if len(mine) <= most:
            remembered += mine
            continue
        row = np.repeat(np.arange(len(mine)), [equation.partitions.size for equation in mine])
        read = np.concatenate([equation.partitions for equation in mine])
        which, column = np.unique(read, return_inverse=True)
        mixes = np.zeros((len(mine), which.size))
        mixes[row, column] = np.concatenate([equation.records for equation in mine])
        mixes /= np.sqrt(np.square(mixes).sum(axis=1))[:, None]
        alike = mixes @ mixes.T
        # A bound says nothing any more once the member was at its limit.
        limited = np.array([equation.limited for equation in mine])
        alike[limited[:, None] & ~limited] = -0.5
        alike[~limited[:, None] & limited] = 2.0
        older, newer = np.nonzero(~np.tri(len(mine), dtype=bool))
        closest = np.argsort(-alike[older, newer], kind="stable")
        left = set(range(len(mine)))
        for pair in zip(older[closest].tolist(), newer[closest].tolist(), strict=True):
            if left.issuperset(pair):
                left.remove(pair[0])
            if len(left) == most:
                break
        remembered += [mine[place] for place in sorted(left)]
    return remembered


def limited_since(mine: Sequence[Equation], before: float | None) -> float:
    """Return since when a member has been at its limit, seconds since the epoch; 0: nobody knows.

    Parameters
    ----------
    mine
        The stretches of the last hour in which it was, by time; at least one.
    before
        The same as it was told at the look before; None: it was not at its limit, or nobody looked.
    """
    if before is not None:
        return before
    since = mine[0].at - mine[0].seconds
    return since if mine[-1].at - since <= _OPEN_UNKNOWN_S else 0.0


def suspect(mine: Sequence[Equation], costs: Costs, usual: float, since: float) -> int | None:
    """Return the partition that may be dear where a member seems slow; None: it is the member.

    Parameters
    ----------
    mine
        The stretches of the last hour in which the member was at its limit, by time; at least one.
    costs
        Of all partitions.
    usual
        What a member does a second, in records of the usual kind, if it is not slow.
    since
        Since when it has been at its limit, seconds since the epoch.

    Notes
    -----
    Either all that the member reads takes it equally long, or one partition takes all that its
    slowness takes: whichever leaves its equations less wrong, by `_TELLS`. Where neither does, a
    plan would tell; once the member was at its limit for two hours nobody has made a plan, and the
    simpler explanation is told.
    """
    if mine[-1].at - since > _OPEN_S:
        return None
    read, rows, seconds = _work_of(mine, costs)
    work = rows.sum(axis=1)
    precision = 1.0 / (_OFF**2 + (_LATE_S / seconds) ** 2)
    of_member = float((precision * (work / np.average(work, weights=precision) - 1.0) ** 2).sum())
    # One partition's records would take so many times as long, for the others to be as usual.
    rest = work[:, None] - rows
    weighed = rows * precision[:, None]
    times = (weighed * (usual - rest)).sum(axis=0) / np.maximum((weighed * rows).sum(axis=0), 1e-9)
    off = (rest + np.maximum(times, 1.0) * rows) / usual - 1.0
    of_each = (precision[:, None] * off**2).sum(axis=0)
    if of_member + _TELLS < of_each.min():
        return None
    likely = of_each < of_each.min() + 1.0
    return int(read[np.where(likely, rows.mean(axis=0), 0.0).argmax()])


class DearPartition(NamedTuple):
    """A partition that may be dear: `costs` with its own, and what members do a second if it is."""

    partition: int
    costs: Costs
    per_s: float


def dear_for_several(equations: Sequence[Equation], costs: Costs) -> DearPartition | None:
    """Return the partition that may have made several members slow; None: there is no such one.

    Parameters
    ----------
    equations
        Of all members.
    costs
        Of all partitions.

    Notes
    -----
    Either members differ, or all do the same work a second and one partition's records take more
    than is known: what they do of all else falls by that much for each of these. That line is
    fitted to the stretches of all members, for each partition that two of them have read at their
    limit. It may hold where it leaves hardly more unexplained than each member's average does.
    """
    limited = [equation for equation in equations if equation.limited]
    if not limited:
        return None
    read, rows, seconds = _work_of(limited, costs)
    names, member = np.unique([equation.member for equation in limited], return_inverse=True)
    readers = np.zeros((names.size, read.size), dtype=bool)
    np.logical_or.at(readers, member, rows > 0)
    shared = readers.sum(axis=0) > 1
    if not shared.any():
        return None
    share = seconds / seconds.sum()
    work = rows.sum(axis=1)
    usual = np.bincount(member, share * work) / np.bincount(member, share)
    apart = float(share @ (work / usual[member] - 1.0) ** 2)
    rest = work[:, None] - rows
    off, off_rest = rows - share @ rows, rest - share @ rest
    falls = share @ (off * off_rest)
    times = -falls / np.maximum(share @ off**2, 1e-9)
    speed = share @ (rest + times * rows)
    left = share @ (rest + times * rows - speed) ** 2 / np.maximum(speed, 1e-9) ** 2
    times *= costs.value[read]
    left[~shared | (times < _DEAR) | (speed <= 0)] = np.inf
    best = int(left.argmin())
    if left[best] > max(apart, 1e-9) * np.exp(_TELLS / seconds.size):
        return None
    value, partition = costs.value.copy(), int(read[best])
    value[partition] = times[best]
    return DearPartition(partition, replace(costs, value=value), float(speed[best]))


def _work_of(equations: Sequence[Equation], costs: Costs) -> tuple[Places, Float64, Float64]:
    """Return which R partitions were read, work a second, shape (E, R), and seconds, shape (E,)."""
    read = np.unique(np.concatenate([equation.partitions for equation in equations]))
    rows = np.zeros((len(equations), read.size))
    for row, equation in zip(rows, equations, strict=True):
        row[np.searchsorted(read, equation.partitions)] = equation.records / equation.seconds
    return read, rows * costs.value[read], np.array([entry.seconds for entry in equations])
