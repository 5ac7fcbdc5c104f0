"""The most likely costs of records, and how well they are known.

Belongs here: solving equations for costs. Does not: the equations (`cost_equations`).

The logarithms of topics' costs, of what partitions deviate from them, and of members' speeds
are the unknown; all are likely to be usual, and few deviate, but those much (Student t priors). The
maximum a posteriori is found by Gauss and Newton. How far off equations are is told by what they
contradict each other: commits blur the ends of stretches, so that what one stretch lacks the next
one has too much, and of the rest nothing is known. Short stretches tell most; but much blur in them
reads as cheaper records, for it comes with what is read at their ends: such stretches are joined.

How well a cost is known is told of its ratio to the usual, the rate-weighted median of what is
connected by who has read what: a common factor nobody can know. It is told without believing that
records or members are usual: whoever seems slow may read what is dear.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fairlead.domain.judgement.cost_equations import Costs, Equation, Places, at_most, fewest
from fairlead.domain.judgement.looks import Float64, Mask, median
from fairlead.domain.judgement.peers import linked

#: A cost counts that deviates from the usual by such a factor, and is known so well.
DEVIATES: Final = 1.5
SURE: Final = 3.0
#: A partition that takes all but so little of its readers' time makes what they do look as steady
#: as one likes, if they are so many times faster than is typical: that explains nothing.
_ALL: Final = 0.8
_FASTEST: Final = 2.0
#: The priors: usual deviations of costs, topics and speeds, in logarithms, and degrees of freedom.
COST: Final = 0.25
TOPIC: Final = 0.5
SPEED: Final = 0.12
FREEDOM: Final = 1.5
#: Of two in the middle whose rates are equal but for this share of all, the cheaper one is usual.
_EQUAL: Final = 0.003
#: How well a cost is known is told with these instead of the first and the last.
_ANY_COST: Final = 0.7
_ANY_SPEED: Final = 0.5
#: A cost is an assumption of whose variance equations take less than this share.
_LEARNT: Final = 0.6
#: Records of a topic take the same where no partition seems further from the others than the first;
#: then they differ by the second.
_APART: Final = 0.35
_SAME: Final = 0.06
#: Equations are off by so much besides what commits blur.
_NOISE: Final = 0.01
#: So many stretches tell as much of how far off they are as is expected; and at least this share of
#: it is seen, however many unknown are fitted to them.
_SURE: Final = 4.0
#: The same once costs are found, and what remains off is told by many of them.
_FOUND: Final = 1.0
_FREE: Final = 0.3
#: An equation that contradicts the others counts less, whether it is old or new.
_OUTLIER: Final = 8.0
#: Where more than this share remains unexplained of so many, those that tell most may have been
#: taken for wrong: what explains twice as much with none taken for wrong at first is right.
_UNEXPLAINED: Final = 0.15
_MANY: Final = 20
#: A member's speed is an unknown of its own wherever it has not been at its limit for so long.
_SAME_SPEED_S: Final = 6 * 3600.0
#: Where commits blur stretches by so many seconds, shorter ones than the second count in twos.
_BLURRED_S: Final = 3.0
_JOINED_S: Final = 110.0
#: At first all equations are doubted by so much, and in each round by this share of it.
_DOUBT: Final = 0.3
_COOLS: Final = 0.5
_ROUNDS: Final = 20
_NEAR: Final = 0.01
_LARGEST_STEP: Final = 0.5


def solve(
    equations: Sequence[Equation], topic_of: npt.NDArray[np.integer], rates: Float64
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

    Notes
    -----
    O(E U² + U³) a round for E equations of U partitions, topics and members.
    """
    count = topic_of.size
    costs = Costs(np.ones(count), np.ones(count), np.full(count, np.inf), equations)
    equations, left = _chosen(equations, at_most(count))
    if not any(entry.limited for entry in equations):
        return costs
    partitions = np.concatenate([entry.partitions for entry in equations])
    read, column = _numbered(partitions, count)
    member = _by_speed(equations)
    seconds = np.array([entry.seconds for entry in equations])
    rows = np.zeros((len(equations), read.size))
    row = np.repeat(np.arange(len(equations)), [entry.partitions.size for entry in equations])
    rows[row, column] = np.concatenate([entry.records for entry in equations]) / seconds[row]
    limited = np.array([entry.limited for entry in equations])
    topic = _numbered(topic_of[read], int(topic_of.max()) + 1)[1]
    given = rows, member, topic, limited, _Noise.of(equations, member)
    likely = _most_likely(*given)
    if likely.beside > _UNEXPLAINED and limited.sum() >= _MANY:
        other = _most_likely(*given, outlier=np.inf)
        likely = other if other.beside < likely.beside / 2.0 else likely
    blurred = limited & (likely.late_s > _BLURRED_S) & (seconds < _JOINED_S)
    joined = _joined(equations, blurred, count)
    if len(joined) < len(equations):
        return solve([*left, *joined], topic_of, rates)
    # What connects nobody has read is not compared: each set has a usual kind of its own.
    equation, partition = np.nonzero(rows)
    _, related = linked(int(member[-1]) + 1, member[equation], partition, read.size)
    found = likely.cost.copy()
    apart, deviation = np.full((2, read.size), np.inf)
    weight = np.maximum(rates[read], 1e-9)
    for part in np.unique(related).tolist():
        mine = (related == part).nonzero()[0]
        usual = weighted_median(found[mine], weight[mine])
        near = mine[_middle(found[mine], weight[mine])]
        found[mine] -= usual
        apart[mine] = likely.deviation(mine, near, weight[near])
        # The usual moves with whatever may lie in its place; what lies around it is known better.
        place = weight[mine] * _density(found[mine], np.minimum(apart[mine], _ANY_COST))
        deviation[mine] = likely.deviation(mine, mine, place)
        alike = likely.by_topics(mine, near, weight[mine])
        apart[mine] = np.minimum(apart[mine], alike)
        deviation[mine] = np.minimum(deviation[mine], alike)
    told = (np.abs(found) > np.log(DEVIATES)) & (np.abs(found) > SURE * apart)
    told &= ~likely.empty
    costs.value[read] = np.where(told, np.exp(found), 1.0)
    costs.estimate[read], costs.deviation[read] = np.exp(found), deviation
    return costs


@dataclass(frozen=True, eq=False)
class _Likely:
    """The most likely logarithms of costs, and what is known of them: U partitions, E equations.

    `cost` and `topic` are of each partition; `own` and `common` are what was known without any
    equation, as variances, of each partition and topic; `side` and `told` are what equations tell
    of each partition's sum of both, float64 of shape (E, U); `late_s` is by how many seconds
    commits blur each equation, shape (E,); `beside` is what share of each they are off besides, a
    standard deviation; `empty` is whether a partition explains anything by
    being all that counts, bool of shape (U,).
    """

    cost: Float64
    topic: Places
    own: Float64
    common: Float64
    side: Float64
    told: Float64
    late_s: Float64
    beside: float
    empty: Mask

    @cached_property
    def _by_partition(self) -> tuple[Float64, Float64]:
        """Return the sides, and what is learnt of each partition by itself: shapes (U, E), (U,)."""
        side = np.ascontiguousarray(self.side.T)
        return side, (side * np.ascontiguousarray(self.told.T)).sum(axis=1)

    def deviation(self, chosen: Places, usual: Places, weight: Float64) -> Float64:
        """Return the standard deviations of some costs over the mean of those that are usual.

        Infinite where equations tell hardly more than was assumed without them.
        """
        share = np.zeros(self.cost.size)
        share[usual] = weight / weight.sum()
        of_topic = np.bincount(self.topic, share, self.common.size)
        topic = self.topic[chosen]
        assumed = self.own[chosen] * (1.0 - 2.0 * share[chosen])
        assumed += self.common[topic] * (1.0 - 2.0 * of_topic[topic])
        assumed += float(share**2 @ self.own + of_topic**2 @ self.common)
        side, told = self.side @ share, self.told @ share
        sides, alone = self._by_partition
        learnt = alone[chosen] + (float(side @ told) - 2.0 * (sides[chosen] @ told))
        left = np.sqrt(np.maximum(assumed - learnt, 0.0))
        return np.where(learnt >= _LEARNT * assumed, left, np.inf)

    def by_topics(self, chosen: Places, usual: Places, weight: Float64) -> Float64:
        """Return the same if all records of a topic took the same; infinite where some do not.

        `weight` is of the chosen ones.
        """
        found = np.full(chosen.size, np.inf)
        topic = self.topic[chosen]
        if (topic == topic[0]).all():
            return found
        kinds, place = _numbered(topic, self.common.size)
        shares = np.zeros((kinds.size, self.cost.size))
        shares[place, chosen] = weight
        shares /= shares.sum(axis=1, keepdims=True)
        center = shares @ self.cost
        alike = np.bincount(place, np.abs(self.cost[chosen] - center[place]) > _APART) == 0
        middle = int(np.searchsorted(kinds, np.bincount(self.topic[usual]).argmax()))
        over = shares - shares[middle]
        of_topic = np.array([np.bincount(self.topic, row, self.common.size) for row in over])
        assumed = over**2 @ self.own + of_topic**2 @ self.common
        learnt = ((over @ self.side.T) * (over @ self.told.T)).sum(axis=1)
        left = np.sqrt(np.maximum(assumed - learnt, 0.0) + _SAME**2)
        left[(learnt < _LEARNT * assumed) | ~alike] = np.inf
        others = np.arange(kinds.size) != middle
        left[middle] = left[others].min() if alike[middle] else np.inf
        return np.where(alike[middle], left[place], found)


@dataclass(frozen=True, eq=False)
class _Noise:
    """How far E equations may be off, as shares.

    `blur` is what a second of it is of each stretch, `later` which stretches begin where the one
    before ends, `member` whose it is, `followed` how many of each member's do that, and `usual_s`
    what blurs it as far as is known beforehand.
    """

    blur: Float64
    later: Places
    member: Places
    followed: Places
    usual_s: Float64

    @classmethod
    def of(cls, equations: Sequence[Equation], member: Places) -> "_Noise":
        """Lay it out for equations in order of members and time."""
        seconds = np.array([equation.seconds for equation in equations])
        begins = np.array([equation.at for equation in equations]) - seconds
        limited = np.array([equation.limited for equation in equations])
        follows = np.zeros(len(equations), dtype=bool)
        follows[1:] = (np.abs(begins[1:] - begins[:-1] - seconds[:-1]) < 1.0) & (
            (member[1:] == member[:-1]) & limited[1:] & limited[:-1]
        )
        usual_s = np.array([equation.blur_s for equation in equations])
        later = np.flatnonzero(follows)
        followed = np.bincount(member[later], minlength=int(member.max()) + 1)
        return cls(1.0 / seconds, later, member, followed, usual_s)

    def late_s(self, off: Float64, sure: float = _SURE) -> Float64:
        """Return by how many seconds commits of each equation's member blur it, shape (E,).

        What one stretch lacks the next one has too much.
        """
        seconds = off / self.blur
        whose, count = self.member[self.later], self.followed.size
        seen = np.bincount(whose, -seconds[self.later] * seconds[self.later - 1], count)
        late = sure * self.usual_s**2 + np.maximum(seen, 0.0)[self.member]
        found: Float64 = np.sqrt(late / (sure + self.followed[self.member]))
        return found

    def beside(
        self, off: Float64, late_s: Float64, limited: Mask, unknown: int, sure: float = _SURE
    ) -> float:
        """Return the variance of what equations are off besides."""
        count = int(limited.sum())
        seen = float((off**2 - 2.0 * (late_s * self.blur) ** 2)[limited].sum())
        # What the unknown have been fitted to is not seen any more.
        free = max(count - unknown, _FREE * count)
        return (sure * _NOISE**2 + max(seen, 0.0)) / (sure + free)

    def covariance(
        self,
        late_s: Float64,
        off: Float64,
        beside: float,
        counts: Mask,
        outlier: float = _OUTLIER,
    ) -> "_Covariance":
        """Return how far those equations are off together that count; followed ones always do."""
        blur = late_s * self.blur
        alone = beside + 2.0 * blur**2
        more = np.sqrt(1.0 + off**2 / alone / outlier)
        blur *= more
        common = -blur[self.later] * blur[self.later - 1]
        return _Covariance((alone * more**2)[counts], (counts.cumsum() - 1)[self.later], common)


class _Covariance(NamedTuple):
    """How far equations are off: each, and `later` ones with the one before each of them."""

    alone: Float64
    later: Places
    common: Float64

    def added_to(self, square: Float64) -> Float64:
        """Add it to a matrix of the equations, in place."""
        square.reshape(-1)[:: len(square) + 1] += self.alone
        square[self.later, self.later - 1] += self.common
        square[self.later - 1, self.later] += self.common
        return square


def _most_likely(
    rows: Float64,
    member: Places,
    topic: Places,
    limited: Mask,
    noise: _Noise,
    *,
    outlier: float = _OUTLIER,
) -> _Likely:
    """Return the most likely logarithms of costs.

    Parameters
    ----------
    rows
        Records a second of each partition in each equation, float64 of shape (E, U).
    member, limited
        Of each equation, shapes (E,); in order of members.
    noise
        How far they may be off.
    topic
        Of each partition, shape (U,).
    outlier
        From how many standard deviations on, squared, an equation counts less while costs are
        sought.
    """
    size, kinds, members = rows.shape[1], int(topic.max()) + 1, int(member.max()) + 1
    # Unknown are by how much each partition deviates from its topic, topics, and members' speeds.
    unknown = np.zeros(size + kinds + members)
    own, of_topic, speed = unknown[:size], unknown[size : size + kinds], unknown[size + kinds :]
    scale = median(np.log(rows[limited].sum(axis=1)))
    spread = np.repeat((COST, TOPIC, SPEED), (size, kinds, members)) ** 2
    slope, work = np.zeros((len(rows), unknown.size)), np.empty_like(rows)
    slope[np.arange(len(rows)), size + kinds + member] = -1.0
    firsts = topic.searchsorted(np.arange(kinds))  # partitions are in order of topics
    # Costs come first: who knows none takes all that they make of it for late commits.
    settled, doubt = False, _DOUBT
    for _ in range(_ROUNDS):
        np.multiply(rows, np.exp(own + of_topic[topic]), out=work)
        load = work.sum(axis=1)
        off = np.log(load) - speed[member] - scale
        late_s = noise.late_s(off) if settled else noise.usual_s
        beside = noise.beside(off, late_s, limited, size) if settled else _NOISE**2 + doubt**2
        counts = limited | (off > 0)
        np.divide(work, load[:, None], out=slope[:, :size])
        slope[:, size : size + kinds] = np.add.reduceat(slope[:, :size], firsts, axis=1)
        free = spread + unknown**2 / FREEDOM
        wrong = noise.covariance(late_s, off, beside, counts, _OUTLIER if settled else outlier)
        told = slope[counts]
        # As many unknowns as there are partitions, and few equations: solved in these.
        root = told * np.sqrt(free)
        square = wrong.added_to(root @ root.T)  # of a matrix and itself: half of the products
        side = told @ unknown - off[counts]
        step = free * (told.T @ np.linalg.solve(square, side)) - unknown
        step = np.minimum(np.maximum(step, -_LARGEST_STEP), _LARGEST_STEP)
        unknown += step
        weight = 1.0 / free[size + kinds :]
        middle = float(speed @ weight / weight.sum())
        scale += middle
        speed -= middle
        doubt *= _COOLS
        if settled and np.abs(step).max() < _NEAR:
            break
        settled = settled or doubt < _NOISE
    late_s = noise.late_s(off, _FOUND)
    beside = noise.beside(off, late_s, limited, size, _FOUND)
    wrong = noise.covariance(late_s, off, beside, counts)
    mine = (rows > 0) & limited[:, None]
    share = (slope[:, :size] * mine).sum(axis=0) / np.maximum(mine.sum(axis=0), 1)
    # Whoever seems slow or fast may be, or what it reads is dear or cheap.
    reads = np.logical_or.reduceat(rows > 0, member.searchsorted(np.arange(members)), axis=0)
    free[:size] += _ANY_COST**2 + (reads * speed[:, None] ** 2).max(axis=0)
    free[size + kinds :] = _ANY_SPEED**2 + speed**2 / FREEDOM
    scaled = told * free
    square = wrong.added_to(scaled @ told.T)
    both = scaled[:, :size] + scaled[:, size + topic]
    return _Likely(
        cost=own + of_topic[topic],
        topic=topic,
        own=free[:size],
        common=free[size : size + kinds],
        side=both,
        told=np.linalg.solve(square, both),
        late_s=late_s,
        beside=float(np.sqrt(beside)),
        empty=(np.where(reads, speed[:, None], np.inf).min(axis=0) > np.log(_FASTEST))
        & (share > _ALL),
    )


def _chosen(equations: Sequence[Equation], most: int) -> tuple[list[Equation], list[Equation]]:
    """Return so many equations, in order of members and time, and the others.

    As many of each member as there is room for; where that is not one, the newest.
    """
    chosen, left = list(equations), list[Equation]()
    if len(equations) > most:
        counts = np.array(list(Counter(entry.member for entry in equations).values()))
        of_each = range(int(counts.max()), 0, -1)
        each = next((each for each in of_each if np.minimum(counts, each).sum() <= most), 0)
        newest = sorted(equations, key=lambda entry: entry.at)[-most:]
        chosen = fewest(equations, each) if each else newest
        kept = {id(entry) for entry in chosen}
        left = [entry for entry in equations if id(entry) not in kept]
    return sorted(chosen, key=lambda entry: (entry.member, entry.at)), left


def _by_speed(equations: Sequence[Equation]) -> Places:
    """Return the number of each equation's speed: shape (E,); in order of members and time.

    Who reads on another machine by then has another speed. Whoever was at rest meanwhile may, too.
    """
    speed, last, found = 0, equations[0], []
    for equation in equations:
        begins = equation.member != last.member or equation.at - last.at > _SAME_SPEED_S
        if begins or equation.limited:
            last = equation
        speed += begins
        found.append(speed)
    return np.array(found)


def _joined(equations: Sequence[Equation], blurred: Mask, partitions: int) -> list[Equation]:
    """Join each stretch that is blurred with the one that follows it, if that is, too.

    Parameters
    ----------
    equations, blurred
        E equations, in order of members and time, and which of them are; bool of shape (E,).
    partitions
        How many there are.
    """
    found: list[Equation] = []
    joins = False
    for equation, is_blurred in zip(equations, blurred.tolist(), strict=True):
        last = found[-1] if joins and is_blurred else None
        if (
            last is not None
            and last.member == equation.member
            and abs(equation.at - equation.seconds - last.at) < 1.0
        ):
            read = np.zeros(partitions)
            read[last.partitions] += last.records
            read[equation.partitions] += equation.records
            places = np.flatnonzero(read)
            seconds = last.seconds + equation.seconds
            found[-1] = equation._replace(seconds=seconds, partitions=places, records=read[places])
            joins = False
        else:
            found.append(equation)
            joins = is_blurred
    return found


def _numbered(values: npt.NDArray[np.integer], count: int) -> tuple[Places, Places]:
    """Return which of so many numbers there are, ascending, and the place of each value in them."""
    there = np.zeros(count, dtype=bool)
    there[values] = True
    return np.flatnonzero(there), (there.cumsum() - 1)[values]


def _density(values: Float64, deviation: Float64) -> Float64:
    """Return how likely each value, known so well, lies at 0: up to a common factor."""
    known = np.maximum(deviation, _NOISE)
    density: Float64 = np.exp(-0.5 * (values / known) ** 2) / known
    return density


def _middle(values: Float64, weights: Float64) -> Places:
    """Return the values in the middle half of their weights, and three at least."""
    order = values.argsort(kind="stable")
    until = weights[order].cumsum() / weights.sum()
    first, middle, last = until.searchsorted((0.25, 0.5, 0.75)).tolist()
    found: Places = order[max(min(first, middle - 1), 0) : max(last, middle + 1) + 1]
    return found


def weighted_median(values: Float64, weights: Float64) -> float:
    """Return the value of which half the weight is no larger."""
    order = values.argsort()
    place = weights[order].cumsum().searchsorted((0.5 - _EQUAL) * weights.sum())
    return float(values[order][min(int(place), values.size - 1)])
