"""Relieve the most loaded member, one move or exchange at a time.

Belongs here: finding the step that gains most, and the sequence of such steps. Belongs elsewhere:
when a plan is good enough, how many moves it may make (`path`).

A step depends only on the current owners, not on earlier steps. So planning again from a finished
plan moves nothing, and a plan with fewer moves is the first part of a plan with more moves.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from assignors.effort import Effort
from assignors.ledger import Ledger, Mask
from assignors.problem import Float64, Int64
from assignors.racks import in_replica_rack

# Let the giver's load be x above the target. After a step, the loads of giver and receiver must be
# at most (1 - _WORTH) * x above the target.
_WORTH = 1e-3
# Minimum gain of a step, as a share of the giver's load. Smaller gains may be rounding errors, and
# such steps could go on forever.
_ROUNDING = 1e-9
# Number of receivers compared in one array computation, the least loaded first.
_AT_ONCE = 4
# If the giver has more partitions than this, receivers are compared one by one, to save memory.
_MANY = 10_000


@dataclass(frozen=True)
class Step:
    """Partitions that move together: one in a move, two in a swap, more in other exchanges.

    Parameters
    ----------
    partitions
        Indices: first the partition that leaves the most loaded member, then the partitions that
        this member gets in exchange.
    giver, taker
        The most loaded member, and the other member of the move or exchange.
    load
        The most loaded member's load before the step.
    """

    partitions: tuple[int, ...]
    giver: int
    taker: int
    load: float

    def takers(self) -> Iterator[tuple[int, int]]:
        """Yield each partition with its new owner."""
        yield self.partitions[0], self.taker
        yield from ((partition, self.giver) for partition in self.partitions[1:])


class _Offer(NamedTuple):
    """A possible step and its value.

    `worth` has three values, of which the first decides first: the load above the target that the
    step removes per moved partition; whether the given partition has a replica in the taker's rack;
    and the higher load of the two members after the step, negated.
    """

    worth: tuple[float, bool, float]
    step: Step


class _Shares:
    """Each member's movable partitions with a weight above 0, by ascending weight."""

    def __init__(self, ledger: Ledger, movable: Mask) -> None:
        chosen = np.flatnonzero(movable & (ledger.weights > 0) & (ledger.owner >= 0))
        owner = ledger.owner[chosen]
        order = np.lexsort((ledger.weights[chosen], owner))
        bounds = np.searchsorted(owner[order], np.arange(ledger.counts.size + 1)).tolist()
        chosen = chosen[order]
        self._ledger = ledger
        self._rows: list[Int64] = [chosen[first:last] for first, last in pairwise(bounds)]

    def of(self, member: int) -> Int64:
        return self._rows[member]

    def take(self, step: Step) -> None:
        """Move the partitions of a step between the two members."""
        (mine, *theirs) = step.partitions
        self._hand_over([mine], step.giver, step.taker)
        if theirs:
            self._hand_over(theirs, step.taker, step.giver)

    def _hand_over(self, partitions: list[int], giver: int, taker: int) -> None:
        row, weights = self._rows[giver], self._ledger.weights
        alone = len(partitions) == 1  # a separate case, since np.isin takes ten times as long
        self._rows[giver] = row[row != partitions[0] if alone else ~np.isin(row, partitions)]
        row = self._rows[taker]
        at = weights[row].searchsorted(weights[partitions])
        self._rows[taker] = np.insert(row, at, partitions)


def relieve(ledger: Ledger, movable: Mask, *, target: float, effort: Effort) -> Iterator[Step]:
    """Take steps until no load is above the target, no step helps, or the effort is spent.

    Parameters
    ----------
    ledger
        Changed in place, before each step is yielded.
    movable
        Which partitions may move, bool of shape (P,).
    target
        Load to reach, positive.
    effort
        Limit on the pairs of members to compare. With a larger limit, the first steps are the same.

    Yields
    ------
    Each step. The search never repeats an assignment, because each step makes the list of loads
    smaller (sorted in descending order, and compared element by element).

    Notes
    -----
    O(K) for each pair of members that is compared, if the two have K partitions together. If the
    least loaded members can take a partition, a step is O(K + M); it takes more if subscriptions or
    limits prevent this.
    """
    shares = _Shares(ledger, movable)
    while ledger.loads.size:
        most_loaded = int(np.argmax(ledger.loads))
        if ledger.loads[most_loaded] <= target:
            return
        step = _best_step(ledger, shares, most_loaded, target, effort)
        if step is None:
            return
        for partition, taker in step.takers():
            ledger.give(partition, taker)
        shares.take(step)
        yield step


def _best_step(
    ledger: Ledger, shares: _Shares, giver: int, target: float, effort: Effort
) -> Step | None:
    """Search receivers in small groups, the least loaded first; return the best step of a group.

    Moves and swaps are tried first. If none helps, one partition is exchanged for several, if this
    helps.
    """
    if not shares.of(giver).size:
        return None
    load = float(ledger.loads[giver])
    highest = load - max(_WORTH * (load - target), _ROUNDING * load)
    receivers = np.flatnonzero(ledger.neighbours(giver) & (ledger.loads < highest))
    receivers = receivers[np.argsort(ledger.loads[receivers], kind="stable")]
    pair_at_once = shares.of(giver).size > _MANY
    for start in range(0, receivers.size, _AT_ONCE):
        takers = receivers[start : start + _AT_ONCE].tolist()
        if not effort.take(len(takers)):
            return None
        offers = [
            _best_offer(ledger, shares, giver, choice, target=target, highest=highest)
            for choice in ([[taker] for taker in takers] if pair_at_once else [takers])
        ]
        if usable := [offer for offer in offers if offer is not None]:
            return max(usable, key=itemgetter(0)).step
    for taker in [] if ledger.limits_topics else receivers.tolist():
        if not effort.take(1):
            return None
        step = _for_several(ledger, shares, giver, taker, target=target, highest=highest)
        if step is not None:
            return step
    return None


def _for_several(
    ledger: Ledger, shares: _Shares, giver: int, taker: int, *, target: float, highest: float
) -> Step | None:
    """Find the best exchange of one partition for several lighter ones of another member.

    None: after every exchange, a member would have a load above `highest`, or a number of
    partitions outside its limits.
    """
    mine = _readable(ledger, shares.of(giver), by=taker)
    theirs = _readable(ledger, shares.of(taker), by=giver)
    if not (mine.size and theirs.size):
        return None
    sums = np.concatenate(([0.0], ledger.weights[theirs].cumsum()))
    last = ledger.weights[theirs].searchsorted(ledger.weights[mine])
    # In exchange for each of `mine`, the taker gives lighter partitions, the heaviest first. Try
    # two numbers of them: as many as fit into the ideal weight (`_ideal_returns`), and one more.
    first = sums.searchsorted(sums[last] - _ideal_returns(ledger, giver, taker, mine))
    first = np.clip(np.concatenate((first, first - 1)), 0, np.tile(last, 2))
    mine, last = np.tile(mine, 2), np.tile(last, 2)
    count, work = last - first, ledger.weights[mine] - (sums[last] - sums[first])
    gain, peak = _effect(ledger, giver, np.array(taker), work, target)
    gain /= 1 + count
    limits, counts = ledger.limits, ledger.counts
    room = min(limits.most[giver] - counts[giver], counts[taker] - limits.fewest[taker]) + 1
    usable = np.flatnonzero((count > 1) & (count <= room) & (peak <= highest))
    if not usable.size:
        return None
    best = usable[np.lexsort((mine[usable], peak[usable], -gain[usable]))[0]]
    partitions = (int(mine[best]), *theirs[first[best] : last[best]].tolist())
    return Step(partitions, giver, taker, float(ledger.loads[giver]))


class _Exchanges(NamedTuple):
    """Possible steps with a taker: swaps of `mine[i]` for `theirs[i]`, or moves of `mine[i]`.

    They are moves if `theirs` is None.
    """

    taker: int
    mine: Int64
    theirs: Int64 | None


def _best_offer(
    ledger: Ledger,
    shares: _Shares,
    giver: int,
    takers: Iterable[int],
    *,
    target: float,
    highest: float,
) -> _Offer | None:
    """Find the best move or swap with one of the takers.

    None: after every move and swap, a member would have a load above `highest`.
    """
    choices = [choice for taker in takers for choice in _exchanges(ledger, shares, giver, taker)]
    if not choices:
        return None
    sizes = np.array([choice.mine.size for choice in choices])
    which = np.repeat(np.arange(len(choices)), sizes)
    taker = np.array([choice.taker for choice in choices])[which]
    swaps = np.array([choice.theirs is not None for choice in choices])[which]
    mine = np.concatenate([choice.mine for choice in choices])
    theirs = np.concatenate(
        [choice.mine if choice.theirs is None else choice.theirs for choice in choices]
    )
    returned = np.where(swaps, ledger.weights[theirs], 0.0)
    work = ledger.weights[mine] - returned
    high = float(ledger.loads[giver])
    gain, peak = _effect(ledger, giver, taker, work, target)
    gain /= np.where(swaps, 2, 1)
    near = in_replica_rack(ledger.problem, mine, taker)
    gain[peak >= high] = -np.inf
    most = np.maximum.reduceat(gain, sizes.cumsum() - sizes)
    order = np.flatnonzero(gain == most[which])
    order = order[np.lexsort((mine[order], peak[order], ~near[order], which[order]))]
    best = order[which[order].searchsorted(np.arange(len(choices)))]  # the first of each choice
    best = best[peak[best] <= highest]
    if not best.size:
        return None
    worth = list(zip(gain[best].tolist(), near[best].tolist(), (-peak[best]).tolist(), strict=True))
    first = worth.index(max(worth))
    at = int(best[first])
    pair = (int(mine[at]), int(theirs[at])) if swaps[at] else (int(mine[at]),)
    return _Offer(worth[first], Step(pair, giver, int(taker[at]), high))


def _effect(
    ledger: Ledger, giver: int, taker: Int64, work: Float64, target: float
) -> tuple[Float64, Float64]:
    """Return two effects of passing `work[i]` from the giver to `taker[i]`, as arrays over i.

    The first array is by how much the loads above the target decrease, as a multiple of the target.
    The second is the higher of the loads of giver and taker afterwards.
    """
    high, low = float(ledger.loads[giver]), ledger.loads[taker]
    after_giver = high - work / ledger.capacity(giver)
    after_taker = low + work / ledger.problem.capacities[taker]
    gain = max(high - target, 0.0) + _excess(low, target)
    gain = gain - _excess(after_giver, target) - _excess(after_taker, target)
    # Rounded, so that gains compare as equal if they differ only by rounding errors.
    return (gain / target).round(12), np.maximum(after_giver, after_taker)


def _excess(load: Float64, target: float) -> Float64:
    return np.maximum(load - target, 0.0)


def _exchanges(ledger: Ledger, shares: _Shares, giver: int, taker: int) -> Iterator[_Exchanges]:
    """Yield the possible moves and swaps between two members."""
    mine = _readable(ledger, shares.of(giver), by=taker)
    if not mine.size:
        return
    welcome = ledger.with_topic_room(taker, mine)
    limits, counts = ledger.limits, ledger.counts
    may_move = counts[giver] > limits.fewest[giver] and counts[taker] < limits.most[taker]
    if may_move and welcome.size:
        yield _Exchanges(taker, welcome, None)
    theirs = _readable(ledger, shares.of(taker), by=giver)
    returned = ledger.with_topic_room(giver, theirs)
    if welcome.size and returned.size:
        # Pair each partition in `welcome` with two in `returned`: those whose weights are next to
        # the ideal, so that both loads become most nearly equal.
        ideal = _ideal_returns(ledger, giver, taker, welcome)
        at = ledger.weights[returned].searchsorted(ideal)
        pairs = np.minimum(np.concatenate((at, np.maximum(at - 1, 0))), returned.size - 1)
        yield _Exchanges(taker, np.concatenate((welcome, welcome)), returned[pairs])
    if theirs.size and (welcome.size < mine.size or returned.size < theirs.size):
        # Limits on topics always allow a swap of two partitions of one topic. To find such swaps,
        # sort `theirs` by topic and weight, and find the partitions of the topic whose weights are
        # next to the ideal.
        my_topics, their_topics = (ledger.problem.topic_of[row] for row in (mine, theirs))
        keys = their_topics * np.int64(theirs.size + 1) + np.arange(theirs.size)
        order = np.argsort(keys)
        ideal = _ideal_returns(ledger, giver, taker, mine)
        rank = np.searchsorted(ledger.weights[theirs], ideal)
        at = np.searchsorted(keys[order], my_topics * np.int64(theirs.size + 1) + rank)
        pairs = np.clip(np.concatenate((at, at - 1)), 0, theirs.size - 1)
        same = their_topics[order[pairs]] == np.tile(my_topics, 2)
        if same.any():
            yield _Exchanges(taker, np.tile(mine, 2)[same], theirs[order[pairs[same]]])


def _readable(ledger: Ledger, partitions: Int64, *, by: int) -> Int64:
    """Return those partitions whose topics a member reads."""
    if ledger.problem.equal_subscriptions:
        return partitions
    return partitions[ledger.reads(by, ledger.problem.topic_of[partitions])]


def _ideal_returns(ledger: Ledger, giver: int, taker: int, mine: Int64) -> Float64:
    """For each of `mine`, return the weight that must come back to make both loads equal."""
    give, take = ledger.capacity(giver), ledger.capacity(taker)
    even = float(ledger.loads[giver] - ledger.loads[taker]) / (1 / give + 1 / take)
    returns: Float64 = ledger.weights[mine] - even
    return returns
