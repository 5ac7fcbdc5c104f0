"""Moves and exchanges that reduce cross-rack traffic, within limits on moves and loads.

Belongs here: a bounded search for such steps in a finished plan. Belongs elsewhere: balancing the
loads of that plan (`relief`, `path`); exchanges that move no additional partition (`settling`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from assignors.ledger import NO_LIMIT
from assignors.problem import Float64, Int32, Int64, Problem
from assignors.racks import Mask, far_partitions
from assignors.spread import even_shares, pairs

# Maximum number of partitions and members examined in all steps together: about a second.
_WORK = 30_000_000
# Steps are compared by savings per move. A step without moves counts as this number of moves.
_FREE = 0.25


@dataclass(frozen=True, eq=False)
class Bounds:
    """Limits of the steps.

    Parameters
    ----------
    load
        Maximum load of a member. A load that is already higher must not rise.
    moves
        Maximum number of partitions that move away from their present owners, including those that
        the finished plan already moves; None: no limit.
    least
        Minimum traffic that a step must save for each partition it moves.
    fixed
        Partitions that stay with their owners, bool of shape (P,).
    counts
        Whether each member must keep its number of partitions, so that only exchanges are possible.
    """

    load: float
    moves: int | None
    least: float
    fixed: Mask
    counts: bool = False


class _Step(NamedTuple):
    """A move or an exchange of two partitions.

    `worth`: traffic saved per move. `peak`: highest load of the changed members. `takes`: each
    partition with its new owner. `moves`: change in the number of moved partitions.
    """

    worth: float
    peak: float
    takes: tuple[tuple[int, int], ...]
    moves: int


def reduce_rack_traffic(
    problem: Problem, owner: Int32, weights: Float64, traffic: Float64, bounds: Bounds
) -> Int32:
    """Move partitions to members in the rack of a replica, the busiest partition first.

    Either the partition moves to a member with room in such a rack, or it is exchanged for a
    partition of a member in such a rack. The step that saves more traffic per move is taken. The
    largest share of a topic on one member does not grow.

    Parameters
    ----------
    problem
        P partitions, M members. A partition counts as moved if it leaves its owner in `problem`.
    owner
        Owners at the start, int32 of shape (P,).
    weights
        Load of each partition, float64 of shape (P,).
    traffic
        Traffic of each partition, float64 of shape (P,), in any unit.

    Returns
    -------
    int32 array of shape (P,).

    Notes
    -----
    O(P + M) for each partition that is read from another rack, at most 30 million in all. Greedy:
    the search ends when no single step helps, even if several together would. In groups of six
    partitions, it saves as much traffic as exhaustive search if members have ample room. It saves
    nine tenths of that if members have room for 50 % more load, and three quarters if they are
    full.

    Examples
    --------
    >>> from assignors.problem import Member
    >>> a, b = Member(["t"], {"t": [0]}, rack="1"), Member(["t"], {"t": [1]}, rack="2")
    >>> problem = Problem.of({"t": 2}, {"a": a, "b": b}, replica_racks={"t": [["2"], ["1"]]})
    >>> bounds = Bounds(load=1.0, moves=None, least=0.0, fixed=np.zeros(2, bool))
    >>> reduce_rack_traffic(problem, problem.owner, np.ones(2), np.ones(2), bounds).tolist()
    [1, 0]
    """
    if problem.rack_set_of is None or not problem.dense or not far_partitions(problem, owner).any():
        return owner
    search = _TrafficSearch(problem, owner, weights, traffic, bounds)
    search.run()
    return search.owner


class _TrafficSearch:
    """The search of `reduce_rack_traffic`, with the owners after the steps so far."""

    def __init__(
        self, problem: Problem, owner: Int32, weights: Float64, traffic: Float64, bounds: Bounds
    ) -> None:
        members = len(problem.members)
        assert problem.rack_set_of is not None  # noqa: S101 - checked by the caller
        self.problem, self.bounds = problem, bounds
        self.owner = owner.copy()
        self.home = problem.owner
        self.weights, self.traffic = weights, traffic
        self.set_of = problem.rack_set_of
        self.far = problem.far.astype(np.int64)
        owned = owner >= 0
        work = np.bincount(owner[owned], weights[owned], members)
        self.loads: Float64 = work / problem.capacities
        shares = pairs(problem, owner)
        self.held = np.zeros((len(problem.topics), members), dtype=np.int64)
        self.held[shares.topic, shares.member] = shares.size
        self.most: Int64 = np.maximum(even_shares(problem), self.held.max(axis=1, initial=0))
        moved = int(((self.home >= 0) & owned & (self.home != owner)).sum())
        self.left = NO_LIMIT if bounds.moves is None else max(bounds.moves - moved, 0)

    def run(self) -> None:
        """Take the best step for each partition read from another rack, until no step helps.

        The busiest partitions come first.
        """
        work, improved = _WORK, True
        each = self.owner.size + len(self.problem.members)
        while improved:
            improved = False
            far = far_partitions(self.problem, self.owner) & ~self.bounds.fixed
            far &= (self.traffic > 0) & (self.traffic >= self.bounds.least)
            order = np.flatnonzero(far)
            for at in order[np.argsort(-self.traffic[order], kind="stable")].tolist():
                work -= each
                if work < 0:
                    return
                if self.far[self.set_of[at], self.owner[at]]:  # false if an exchange moved it
                    improved |= self._improve(at)

    def _improve(self, at: int) -> bool:
        """Take the best step for a partition; return whether there was one."""
        steps = [step for step in (self._move(at), self._swap(at)) if step is not None]
        if not steps:
            return False
        best = max(steps, key=lambda step: (step.worth, -step.peak))
        for partition, taker in best.takes:
            giver, topic = int(self.owner[partition]), int(self.problem.topic_of[partition])
            for member, sign in ((giver, -1), (taker, 1)):
                self.held[topic, member] += sign
                self.loads[member] += (
                    sign * self.weights[partition] / self.problem.capacities[member]
                )
            self.owner[partition] = taker
        self.left -= best.moves
        return True

    def _move(self, at: int) -> _Step | None:
        """Of all moves to a member in a replica's rack, return the one with the lowest `peak`."""
        topic, moves = int(self.problem.topic_of[at]), int(self.owner[at] == self.home[at])
        if self.bounds.counts or moves > self.left:
            return None
        near = self.problem.reads[topic] & (self.far[self.set_of[at]] == 0)
        near &= self.held[topic] < self.most[topic]
        takers = np.flatnonzero(near)
        after = self.loads[takers] + self.weights[at] / self.problem.capacities[takers]
        fits = after <= self.bounds.load
        if not fits.any():
            return None
        takers, after = takers[fits], after[fits]
        best = int(after.argmin())
        worth = float(self.traffic[at]) / max(moves, _FREE)
        return _Step(worth, float(after[best]), ((at, int(takers[best])),), moves)

    def _swap(self, at: int) -> _Step | None:
        """Of all exchanges with a member in a replica's rack, return the one with most `worth`."""
        topics, owner, giver = self.problem.topic_of, self.owner, int(self.owner[at])
        topic, takers = topics[at], np.maximum(owner, 0)
        may = (owner >= 0) & (owner != giver) & ~self.bounds.fixed
        may &= (self.far[self.set_of[at], takers] == 0) & self.problem.reads[topic, takers]
        may &= self.problem.reads[topics, giver]
        room = self.held[topic, takers] < self.most[topic]
        room &= self.held[topics, giver] < self.most[topics]
        may &= room | (topics == topic)
        others = np.flatnonzero(may)
        if not others.size:
            return None
        takers = owner[others]
        saved = self.traffic[at] + self.traffic[others] * (
            self.far[self.set_of[others], takers] - self.far[self.set_of[others], giver]
        )
        moves = self._moved(at, takers) - self._moved(at, giver)
        moves = moves + self._moved(others, giver) - self._moved(others, takers)
        worth = saved / np.maximum(moves, _FREE)
        shift = self.weights[others] - self.weights[at]
        capacities, load = self.problem.capacities, self.bounds.load
        mine = self.loads[giver] + shift / capacities[giver]
        theirs = self.loads[takers] - shift / capacities[takers]
        fits = mine <= max(load, float(self.loads[giver]))
        fits &= theirs <= np.maximum(load, self.loads[takers])
        fits &= (saved > 0) & (saved >= self.bounds.least * moves) & (moves <= self.left)
        if not fits.any():
            return None
        candidates = np.flatnonzero(fits)
        peak = np.maximum(mine, theirs)[candidates]
        best = int(candidates[np.lexsort((candidates, peak, -worth[candidates]))[0]])
        takes = ((at, int(takers[best])), (int(others[best]), giver))
        return _Step(
            float(worth[best]), float(max(mine[best], theirs[best])), takes, int(moves[best])
        )

    def _moved(self, partition: int | Int64, holder: int | Int32) -> Int64:
        """Return 1 for each partition that would leave its original owner, else 0."""
        home = self.home[partition]
        moved: Int64 = np.asarray((home >= 0) & (home != holder), dtype=np.int64)
        return moved
