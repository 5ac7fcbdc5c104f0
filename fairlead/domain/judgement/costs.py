"""What a record of each partition takes, in records of the usual kind.

Belongs here: costs, from what members read while they were at their limit. Does not: who is at a
limit (`commits`), nor how fast members are (`capacities`).

A member at its limit spends all of a stretch on what it reads: with c what a record of a partition
takes, and s how much a member does a second, sum over p of c_p n_p = s dt. Kafka's clients read one
fetched chunk after the other, and plans move partitions: stretches hold partitions in ever other
shares, and each is an equation of its own. A member that was not at its limit is a bound: the sum
is at most s dt. Where equations leave something open, all is taken to be usual: records take
equally long, members are equally fast; few deviate, but those much (Student t priors, maximum a
posteriori by Gauss and Newton in logarithms).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from assignors.problem import Problem
from fairlead.common.words import plural
from fairlead.domain.judgement.commits import Commits, held_up
from fairlead.domain.judgement.looks import Float64, Looks, Mask
from fairlead.domain.judgement.peers import linked

Places = npt.NDArray[np.intp]
Mix = tuple[Places, Float64]
"""What was read: partitions, intp of shape (N,), and records of each, float64 of shape (N,)."""

#: A stretch is so long at most, in seconds, and so many commit intervals at least.
STRETCH_S: Final = 120.0
INTERVALS: Final = 2
#: Whoever commits more rarely than looks are taken, by such a factor, is looked at for so many
#: times its longest pause: when in a step a commit came nobody knows.
LATE: Final = 1.5
GAPS: Final = 4.0
#: But no longer, in seconds.
LONGEST_S: Final = 480.0
#: So many equations of a member are remembered, for so long.
REMEMBERED: Final = 6
LASTS_S: Final = 7 * 86_400.0
#: A cost counts that deviates from the usual by such a factor, and is known so well.
DEVIATES: Final = 1.5
SURE: Final = 2.0
#: A cost is known whose interval of nine in ten lies within a quarter of it.
NINE_IN_TEN: Final = 1.645
KNOWN: Final = 0.135
#: The priors: usual deviations of costs and speeds, in logarithms, and degrees of freedom.
_COST: Final = 0.25
_SPEED: Final = 0.12
_TOPIC: Final = 0.5
_FREEDOM: Final = 1.5
#: How well a cost is known is told without believing that members are equally fast.
_ANY_SPEED: Final = 0.5
#: What commits tell of a stretch may be so wrong, and comes so many seconds late.
_NOISE: Final = 0.03
_LATE_S: Final = 5.0
#: An equation that contradicts the others counts less; and less as it grows old.
_OUTLIER: Final = 4.0
_HALF_S: Final = 6 * 3600.0
_ROUNDS: Final = 30
_NEAR: Final = 0.003
_LARGEST_STEP: Final = 0.5
#: No more equations than these at once; the newest count.
_MOST: Final = 300
#: Nor with more coefficients in all.
_CELLS: Final = 4_000_000
#: An explanation is told that leaves equations so much less wrong: three standard deviations.
_TELLS: Final = 9.0
#: Two explanations are told for so long at most.
_OPEN_S: Final = 2700.0
#: So many partitions are named.
_NAMED: Final = 3


@dataclass(frozen=True, eq=False)
class Equation:
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
    """

    member: str
    at: float
    seconds: float
    limited: bool
    partitions: Places
    records: Float64


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
    """

    value: Float64
    estimate: Float64
    deviation: Float64

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
        """Return what is dear and what is cheap in words, the furthest from the usual first."""
        apart = np.flatnonzero(self.value != 1.0)
        furthest = apart[np.argsort(-np.abs(np.log(self.value[apart])), kind="stable")]
        names = [
            "{}-{} ({:.2g} times)".format(*problem.partition_name(place), self.value[place])
            for place in furthest[:_NAMED].tolist()
        ]
        others = f" and {plural(apart.size - _NAMED, 'other')}" if apart.size > _NAMED else ""
        return (
            f"counted in records of the usual kind, for those of {', '.join(names)}{others} "
            "take another time"
        )

    def of(self, partitions: Places, records: Float64) -> float:
        """Return what a record takes on average of so many of some partitions, shapes (N,)."""
        total = float(records.sum())
        return float((self.value[partitions] * records).sum()) / total if total > 0 else 1.0


def equations_of(looks: Looks, commits: Commits, objective_s: float = 60.0) -> list[Equation]:
    """Return the equations that looks hold, each member's in order of time.

    Parameters
    ----------
    looks
        Of the last hour, or so.
    commits
        What these say.
    objective_s
        Whoever wants to be in time by a few seconds cannot wait for stretches of minutes.
    """
    least_s = min(STRETCH_S, 2.0 * objective_s)
    counted = commits.marked & commits.steady & ~commits.replayed
    if not (counted & commits.busy).any():
        return []  # nobody was at a limit
    total = np.concatenate((np.zeros((1, looks.partitions)), commits.taken.cumsum(axis=0)))
    most = _at_most(looks.partitions)
    commits = replace(commits, busy=commits.busy & ~held_up(looks))
    found: list[Equation] = []
    for member in np.flatnonzero(counted.any(axis=0)).tolist():
        limited, at_rest = _stretches(looks, commits, member, least_s)
        chosen = [*limited[-most:], *at_rest]
        if not chosen:
            continue
        start, end = np.array(chosen).T
        read = np.where(looks.owner[end] == member, total[end] - total[start], 0.0)
        row, place = np.nonzero(read > 0)
        records = read[row, place]
        begin = np.searchsorted(row, np.arange(len(chosen) + 1)).tolist()
        seconds, at = (looks.at[end] - looks.at[start]).tolist(), looks.at[end].tolist()
        found += [
            Equation(
                looks.members[member],
                at[number],
                seconds[number],
                number < len(limited[-most:]),
                place[begin[number] : begin[number + 1]],
                records[begin[number] : begin[number + 1]],
            )
            for number in range(len(chosen))
            if begin[number] < begin[number + 1]
        ]
    return found


def _at_most(partitions: int) -> int:
    """Return how many equations are solved at once."""
    return max(1, min(_MOST, _CELLS // max(partitions, 1)))


def _stretches(
    looks: Looks, commits: Commits, member: int, least_s: float
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return when a member was at its limit, and the newest time when it was at rest, if any.

    As the first and the last look of each stretch, in order of time.
    """
    marks = np.flatnonzero(commits.marked[:, member])
    first, last = marks[:-1], marks[1:]
    usable = commits.steady[:, member] & ~commits.replayed[:, member]
    broken = np.concatenate(([0], (~usable).cumsum()))
    whole = broken[last + 1] == broken[first + 1]
    busy = commits.busy[:, member]
    limited, at_rest = whole & busy[first] & busy[last], whole & ~busy[first] & ~busy[last]
    gaps = (looks.at[last + 1] - looks.at[first + 1]).tolist()
    ends = (marks + 1).tolist()

    def of(intervals: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield stretches of enough of these intervals, one after the other."""
        count, span, longest, before = 0, 0.0, 0.0, -2
        for interval in intervals:
            if abs(interval - before) != 1:
                count, span, longest = 0, 0.0, 0.0
            before, gap = interval, gaps[interval]
            count, span, longest = count + 1, span + gap, max(longest, gap)
            late = longest if longest > LATE * looks.step else 0.0
            least = max(least_s - 1.0, min(GAPS * late, LONGEST_S))
            if span >= least and count >= INTERVALS:
                begin, end = sorted((interval, interval - count + 1))
                yield ends[begin], ends[end + 1]
                count, span, longest = 0, 0.0, 0.0

    backwards = np.flatnonzero(at_rest)[::-1].tolist()
    return list(of(np.flatnonzero(limited).tolist())), list(islice(of(backwards), 1))


def lasting(old: Sequence[Equation], new: Sequence[Equation], since: float) -> list[Equation]:
    """Return the equations to go on with: what is remembered from before some looks, and theirs.

    Parameters
    ----------
    since
        When the oldest of the looks was taken, from which `new` are; seconds since the epoch.
    """
    return [one for one in old if since - LASTS_S <= one.at <= since] + list(new)


def fewest(equations: Sequence[Equation], partitions: int) -> list[Equation]:
    """Return the few of each member that say most: of two much alike the older one goes."""
    members: dict[str, list[Equation]] = {}
    for one in equations:
        members.setdefault(one.member, []).append(one)
    remembered: list[Equation] = []
    for mine in members.values():
        mine.sort(key=lambda one: one.at)
        if len(mine) <= REMEMBERED:
            remembered += mine
            continue
        mixes = np.zeros((len(mine), partitions))
        for row, one in zip(mixes, mine, strict=True):
            row[one.partitions] = one.records
        mixes /= np.sqrt(np.square(mixes).sum(axis=1))[:, None]
        alike = mixes @ mixes.T
        # A bound says nothing any more once the member was at its limit.
        limited = np.array([one.limited for one in mine])
        alike[limited[:, None] & ~limited] = -0.5
        alike[~limited[:, None] & limited] = 2.0
        alike[np.tril_indices(len(mine))] = -1.0
        left = np.ones(len(mine), dtype=bool)
        while left.sum() > REMEMBERED:
            older = int(np.unravel_index(alike.argmax(), alike.shape)[0])
            left[older] = False
            alike[older] = alike[:, older] = -1.0
        remembered += [one for one, stays in zip(mine, left.tolist(), strict=True) if stays]
    return remembered


def solve(
    equations: Sequence[Equation], topic_of: npt.NDArray[np.integer], rates: Float64, now: float
) -> Costs:
    """Estimate what records take.

    Parameters
    ----------
    equations
        Of P partitions.
    topic_of
        Each partition's topic, an integer of shape (P,).
    rates
        Arrivals, records a second, float64 of shape (P,): what is usual is what most records take.
    now
        Seconds since the epoch.

    Notes
    -----
    O(E U² + U³) a round for E equations of U partitions, topics and members.
    """
    count = topic_of.size
    costs = Costs(np.ones(count), np.ones(count), np.full(count, np.inf))
    equations = sorted(equations, key=lambda one: one.at)[-_at_most(count) :]
    if not any(one.limited for one in equations):
        return costs
    partitions = np.concatenate([one.partitions for one in equations])
    read, column = np.unique(partitions, return_inverse=True)
    names = sorted({one.member for one in equations})
    place = {name: index for index, name in enumerate(names)}
    member = np.array([place[one.member] for one in equations])
    seconds = np.array([one.seconds for one in equations])
    rows = np.zeros((len(equations), read.size))
    row = np.repeat(np.arange(len(equations)), [one.partitions.size for one in equations])
    rows[row, column] = np.concatenate([one.records for one in equations]) / seconds[row]
    age = np.maximum(now - np.array([one.at for one in equations]), 0.0)
    found, deviation = _most_likely(
        rows,
        member,
        np.unique(topic_of[read], return_inverse=True)[1],
        np.array([one.limited for one in equations]),
        0.5 ** (age / _HALF_S) / (_NOISE**2 + (_LATE_S / seconds) ** 2),
    )
    # What connects nobody has read is not compared: each set has a usual kind of its own.
    equation, partition = np.nonzero(rows)
    _, related = linked(len(names), member[equation], partition, read.size)
    for part in np.unique(related).tolist():
        mine = related == part
        found[mine] -= _weighted_median(found[mine], np.maximum(rates[read][mine], 1e-9))
    told = (np.abs(found) > np.log(DEVIATES)) & (np.abs(found) > SURE * deviation)
    costs.value[read] = np.where(told, np.exp(found), 1.0)
    costs.estimate[read], costs.deviation[read] = np.exp(found), deviation
    return costs


def suspect(mine: Sequence[Equation], costs: Costs, usual: float) -> int | None:
    """Return the partition that may be dear where a member seems slow; None: it is the member.

    Parameters
    ----------
    mine
        The stretches in which the member was at its limit, by time.
    costs
        Of all partitions.
    usual
        What a member does a second, in records of the usual kind, if it is not slow.

    Notes
    -----
    Either all that the member reads takes it equally long, or one partition takes all that its
    slowness takes: whichever leaves its equations less wrong, by `_TELLS`. Where neither does, a
    plan would tell; once the member was at its limit for an hour nobody has made one, and the
    simpler explanation is told.
    """
    if not mine or mine[-1].at - mine[0].at + mine[0].seconds > _OPEN_S:
        return None
    read = np.unique(np.concatenate([one.partitions for one in mine]))
    rows = np.zeros((len(mine), read.size))
    for row, one in zip(rows, mine, strict=True):
        row[np.searchsorted(read, one.partitions)] = one.records / one.seconds
    rows *= costs.value[read]
    work = rows.sum(axis=1)
    seconds = np.array([one.seconds for one in mine])
    precision = 1.0 / (_NOISE**2 + (_LATE_S / seconds) ** 2)
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


def _most_likely(
    rows: Float64, member: Places, topic: Places, limited: Mask, precision: Float64
) -> tuple[Float64, Float64]:
    """Return the most likely logarithms of costs, and their standard deviations, shapes (U,).

    Parameters
    ----------
    rows
        Records a second of each partition in each equation, float64 of shape (E, U).
    member, limited, precision
        Of each equation, shapes (E,).
    topic
        Of each partition, shape (U,).
    """
    size, kinds, members = rows.shape[1], int(topic.max()) + 1, int(member.max()) + 1
    # Unknown are by how much each partition deviates from its topic, topics, and members' speeds.
    unknown = np.zeros(size + kinds + members)
    own, of_topic, speed = np.split(unknown, [size, size + kinds])  # views
    scale = float(np.median(np.log(rows[limited].sum(axis=1))))
    spread = np.repeat((_COST, _TOPIC, _SPEED), (size, kinds, members)) ** 2
    slope = np.zeros((len(rows), unknown.size))
    slope[np.arange(len(rows)), size + kinds + member] = -1.0
    firsts = np.flatnonzero(np.diff(topic, prepend=-1))  # partitions are in order of topics
    for _ in range(_ROUNDS):
        work = rows * np.exp(own + of_topic[topic])
        load = work.sum(axis=1)
        off = np.log(load) - speed[member] - scale
        weight = precision / (1.0 + off**2 * precision / _OUTLIER)
        counts = limited | (off > 0)
        slope[:, :size] = work / load[:, None]
        slope[:, size : size + kinds] = np.add.reduceat(slope[:, :size], firsts, axis=1)
        free = spread + unknown**2 / _FREEDOM
        told, noise = slope[counts], 1.0 / weight[counts]
        # As many unknowns as there are partitions, and few equations: solved in these.
        square = (told * free) @ told.T + np.diag(noise)
        side = told @ unknown - off[counts]
        step = free * (told.T @ np.linalg.solve(square, side)) - unknown
        step = np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        unknown += step
        middle = float(np.average(speed, weights=1.0 / free[size + kinds :]))
        scale += middle
        speed -= middle
        if np.abs(step).max() < _NEAR:
            break
    free[size + kinds :] = _ANY_SPEED**2 + speed**2 / _FREEDOM
    scaled = told * free
    square = scaled @ told.T + np.diag(noise)
    # Of the sum of a partition's and its topic's logarithms.
    both = scaled[:, :size] + scaled[:, size + topic]
    variance = free[:size] + free[size + topic]
    variance -= (both * np.linalg.solve(square, both)).sum(axis=0)
    deviation = np.sqrt(np.maximum(variance, 0.0))
    # Where equations contradict each other more than commits explain, all of it is known less.
    deviation *= max(1.0, float(np.sqrt((precision * off**2)[limited].mean())))
    return own + of_topic[topic], deviation


def _weighted_median(values: Float64, weights: Float64) -> float:
    order = np.argsort(values)
    place = np.searchsorted(weights[order].cumsum(), weights.sum() / 2.0)
    return float(values[order][min(int(place), values.size - 1)])
