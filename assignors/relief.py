"""Relieving the heaviest member, one move or swap at a time.

Belongs here: finding the step that pays most, and the path such steps make. Does not: when a plan
is good enough and how many moves it may spend (`sticky_lag_aware`).

A step is chosen from the state alone, never from how the state came about. So planning again from
a plan goes on where the plan stopped, which is nowhere; and a plan with fewer moves is the
beginning of the plan with more.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assignors.effort import Effort
from assignors.ledger import Ledger, Mask, in_replica_rack
from assignors.problem import Float64, Int32, Int64

# A step has to bring both members closer to the target than the heaviest is by this share.
_WORTH = 1e-3
# And by this share of its load: below it a gain may be rounding alone, and steps go in circles.
_ROUNDING = 1e-9
# Receivers looked at together, the lightest first.
_AT_ONCE = 4


@dataclass(frozen=True)
class Step:
    """Partitions that change hands together: one for a move, two for a swap.

    Parameters
    ----------
    partitions
        Indices: the one that leaves the heaviest member first.
    giver, taker
        The heaviest member, and the other one.
    load
        The heaviest member's load before the step.
    """

    partitions: tuple[int, ...]
    giver: int
    taker: int
    load: float

    def takers(self) -> Iterator[tuple[int, int]]:
        """Each partition with its new owner."""
        return zip(self.partitions, (self.taker, self.giver), strict=False)


@dataclass(frozen=True)
class _Offer:
    """A possible step and what speaks for it; offers compare by that."""

    gain: float
    """Load above the target that vanishes, for each partition moved."""
    peak: float
    """The heavier of the two members afterwards."""
    near: bool
    """Whether the partition comes to a replica's rack."""
    step: Step

    def key(self) -> tuple[float, bool, float]:
        return (self.gain, self.near, -self.peak)


class _Shares:
    """Each member's movable partitions, by ascending weight; none without weight."""

    def __init__(self, ledger: Ledger, movable: Mask) -> None:
        chosen = np.flatnonzero(movable & (ledger.weights > 0) & (ledger.owner >= 0))
        owner = ledger.owner[chosen]
        order = np.lexsort((ledger.weights[chosen], owner))
        bounds = np.searchsorted(owner[order], np.arange(1, ledger.counts.size))
        self._ledger = ledger
        self._rows: list[Int64] = np.split(chosen[order], bounds)

    def of(self, member: int) -> Int64:
        return self._rows[member]

    def hand_over(self, partition: int, giver: int, taker: int) -> None:
        row = self._rows[giver]
        self._rows[giver] = row[row != partition]
        row = self._rows[taker]
        at = np.searchsorted(self._ledger.weights[row], self._ledger.weights[partition])
        self._rows[taker] = np.insert(row, int(at), partition)


def relieve(ledger: Ledger, movable: Mask, *, target: float, effort: Effort) -> Iterator[Step]:
    """Take steps until no member's load is above the target, none helps, or the effort is spent.

    Parameters
    ----------
    ledger
        Changed in place, before each step is yielded.
    movable
        Which partitions may move, bool of shape (P,).
    target
        Load to reach, positive.
    effort
        How many pairs of members may be looked at; the steps until then are those of any larger
        effort.

    Yields
    ------
    Each step. No sequence of steps comes back to where it was: they make the loads, in descending
    order, ever smaller.

    Notes
    -----
    O(K + M) a step, K being partitions of the members concerned, where the lightest members can
    take something; more where eligibility or limits keep them from it. In all O(K) a pair of
    members that is looked at.
    """
    shares = _Shares(ledger, movable)
    while ledger.loads.size:
        heaviest = int(np.argmax(ledger.loads))
        if ledger.loads[heaviest] <= target:
            return
        step = _best_step(ledger, shares, heaviest, target, effort)
        if step is None:
            return
        for partition, taker in step.takers():
            giver = int(ledger.owner[partition])
            ledger.give(partition, taker)
            shares.hand_over(partition, giver, taker)
        yield step


def _best_step(
    ledger: Ledger, shares: _Shares, giver: int, target: float, effort: Effort
) -> Step | None:
    """Find the best step with the lightest receivers; go on to heavier ones while there is none."""
    if not shares.of(giver).size:
        return None
    load = float(ledger.loads[giver])
    highest = load - max(_WORTH * (load - target), _ROUNDING * load)
    receivers = np.flatnonzero(ledger.neighbours(giver) & (ledger.loads < highest))
    receivers = receivers[np.argsort(ledger.loads[receivers], kind="stable")]
    for start in range(0, receivers.size, _AT_ONCE):
        takers = receivers[start : start + _AT_ONCE].tolist()
        if not effort.take(len(takers)):
            return None
        offers = [
            offer
            for taker in takers
            for offer in _offers(ledger, shares, giver, taker, target)
            if offer.peak <= highest
        ]
        if offers:
            return max(offers, key=_Offer.key).step
    return None


def _offers(
    ledger: Ledger, shares: _Shares, giver: int, taker: int, target: float
) -> Iterator[_Offer]:
    """Offer the best move and the best swaps between two members."""
    pair = _Pair(ledger, giver, taker, target)
    mine, my_topics = pair.readable(shares.of(giver), by=taker)
    if not mine.size:
        return
    welcome = mine[ledger.has_topic_room(taker, my_topics)]
    limits, counts = ledger.limits, ledger.counts
    may_move = counts[giver] > limits.fewest[giver] and counts[taker] < limits.most[taker]
    if may_move and welcome.size:
        yield pair.best(welcome, None)
    theirs, their_topics = pair.readable(shares.of(taker), by=giver)
    returned = theirs[ledger.has_topic_room(giver, their_topics)]
    if welcome.size and returned.size:
        yield pair.best_swap(welcome, returned)
    if theirs.size and (welcome.size < mine.size or returned.size < theirs.size):
        # Two partitions of one topic can change places whatever the limits on topics.
        yield from pair.best_swap_within_topics(mine, my_topics, theirs, their_topics)


class _Pair:
    """What exchanges between two members would bring."""

    def __init__(self, ledger: Ledger, giver: int, taker: int, target: float) -> None:
        self.ledger, self.giver, self.taker, self.target = ledger, giver, taker, target
        self.high, self.low = float(ledger.loads[giver]), float(ledger.loads[taker])

    def readable(self, partitions: Int64, *, by: int) -> tuple[Int64, Int32]:
        """Return those of the partitions that a member may read, and their topics."""
        topics = self.ledger.problem.topic_of[partitions]
        if self.ledger.problem.equal_subscriptions:
            return partitions, topics
        readable = self.ledger.reads(by, topics)
        return partitions[readable], topics[readable]

    def best(self, mine: Int64, theirs: Int64 | None) -> _Offer:
        """Pick the best of moves, or of swaps of elements side by side."""
        ledger = self.ledger
        work = ledger.weights[mine] - (0 if theirs is None else ledger.weights[theirs])
        after_giver = self.high - work / ledger.capacity(self.giver)
        after_taker = self.low + work / ledger.capacity(self.taker)
        peak = np.maximum(after_giver, after_taker)
        before = max(self.high - self.target, 0.0) + max(self.low - self.target, 0.0)
        gain = before - self._excess(after_giver) - self._excess(after_taker)
        # Gains that differ by rounding alone are the same gain.
        gain = np.round(gain / self.target, 12) / (1 if theirs is None else 2)
        near = in_replica_rack(ledger.problem, mine, np.full(mine.size, self.taker))
        best = int(np.lexsort((mine, peak, ~near, -gain, peak >= self.high))[0])
        partitions = (mine[best],) if theirs is None else (mine[best], theirs[best])
        step = Step(tuple(int(p) for p in partitions), self.giver, self.taker, self.high)
        return _Offer(float(gain[best]), float(peak[best]), bool(near[best]), step)

    def best_swap(self, mine: Int64, theirs: Int64) -> _Offer:
        """Pick for each of mine the two of theirs that come closest to evening out both."""
        at = np.searchsorted(self.ledger.weights[theirs], self._ideal_returns(mine))
        pairs = np.concatenate((at, np.maximum(at - 1, 0)))
        return self.best(np.tile(mine, 2), theirs[np.minimum(pairs, theirs.size - 1)])

    def best_swap_within_topics(
        self, mine: Int64, my_topics: Int32, theirs: Int64, their_topics: Int32
    ) -> Iterator[_Offer]:
        """Do the same, each of mine for one of the same topic."""
        # Theirs in order of (topic, weight), and where mine would stand among them.
        keys = their_topics * np.int64(theirs.size + 1) + np.arange(theirs.size)
        order = np.argsort(keys)
        rank = np.searchsorted(self.ledger.weights[theirs], self._ideal_returns(mine))
        at = np.searchsorted(keys[order], my_topics * np.int64(theirs.size + 1) + rank)
        pairs = np.clip(np.concatenate((at, at - 1)), 0, theirs.size - 1)
        same = their_topics[order[pairs]] == np.tile(my_topics, 2)
        if same.any():
            yield self.best(np.tile(mine, 2)[same], theirs[order[pairs[same]]])

    def _ideal_returns(self, mine: Int64) -> Float64:
        """Weight that, given back for each of mine, would even out the two members."""
        give, take = self.ledger.capacity(self.giver), self.ledger.capacity(self.taker)
        even = (self.high - self.low) / (1 / give + 1 / take)
        returns: Float64 = self.ledger.weights[mine] - even
        return returns

    def _excess(self, load: Float64) -> Float64:
        return np.maximum(load - self.target, 0.0)
