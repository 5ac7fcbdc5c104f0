"""Spread topics by swaps, if the flow network of `aims` is too large or OR-Tools is missing.

Belongs here: a bounded search over the counts of each topic's partitions on each member. Belongs
elsewhere: the exact solution (`aims`).
"""

import numpy as np
import numpy.typing as npt

from assignors.problem import Int32, Int64, Problem
from assignors.spread import even_shares, pairs

Mask = npt.NDArray[np.bool_]

# Maximum of topics x members x steps: a few tenths of a second.
_WORK = 10_000_000
# If fewer steps than this are possible, none is taken, since they would change almost nothing.
_FEWEST_STEPS = 100


def spread_out(problem: Problem, owner: Int32, *, keep_all: bool = False) -> Int32:
    """Swap partitions between members as long as a swap spreads a topic and concentrates none.

    Each step reduces the share that is largest compared to its topic's even share. The member with
    this share gives a partition of the topic to another member, and usually gets a partition of
    another topic back. The other member and topic are chosen to reduce the sum of squared shares
    most. The loads stay the same, except that two members may exchange their loads. The number of
    moved partitions stays the same. A share that grows never exceeds the share of the same topic
    that the other member had before.

    Parameters
    ----------
    problem
        P partitions of T topics, M members.
    owner
        Owners before the swaps, int32 of shape (P,).
    keep_all
        Never move an owned partition.

    Returns
    -------
    int32 array of shape (P,).

    Notes
    -----
    O(T M) per step, at most 10^7 / (T M) steps, and none if this is less than 100. The search ends
    when no single swap helps, even if several together would.
    """
    steps = _WORK // max(len(problem.topics) * len(problem.members), 1)
    if steps < _FEWEST_STEPS:
        return owner
    search = _Search(problem, owner, keep_all=keep_all)
    changed = False
    for _ in range(steps):
        if not search.step():
            break
        changed = True
    return _deal(problem, search.held) if changed else owner


class _Search:
    """The search of `spread_out`. `held`: partitions of each topic on each member, shape (T, M)."""

    def __init__(self, problem: Problem, owner: Int32, *, keep_all: bool) -> None:
        self.held = _matrix(problem, owner)
        self.owned = _matrix(problem, problem.owner)
        self.keep_all = keep_all
        self.reads = problem.reads
        self.counts = self.held.sum(axis=0)
        self.even = even_shares(problem)
        self.stuck = np.zeros(self.held.shape, dtype=bool)

    def step(self) -> bool:
        """Make the best swap for the largest share that a swap can reduce; False: there is none."""
        excess = np.where(self.stuck | (self.held <= 1), 0.0, self.held / self.even[:, None])
        while excess.size and excess.max() > 0:
            topic, giver = (int(at) for at in divmod(int(np.argmax(excess)), excess.shape[1]))
            gain = self._gains(topic, giver)
            back, taker = divmod(int(np.argmax(gain)), gain.shape[1])
            if gain[back, taker] > 0:
                self._swap(topic, giver, int(back), int(taker))
                self.stuck[:] = False
                return True
            self.stuck[topic, giver] = True
            excess[topic, giver] = 0.0
            if self.stuck.sum() * self.held.size > _WORK:
                return False
        return False

    def _gains(self, topic: int, giver: int) -> Int64:
        """Return the gain of each swap of a partition of `topic`, int64 of shape (T + 1, M).

        There is a row for each topic of which the giver gets a partition back, and a column for
        each receiver. In the last row, nothing is given back. Such a move is allowed if the giver
        has exactly one partition more than the receiver. 0 or less: the step is not allowed or does
        not help.
        """
        held, owned = self.held, self.owned
        off = held[topic, giver] - held[topic] - 1
        kept = (held[topic] < owned[topic]).astype(np.int64) - (
            held[topic, giver] <= owned[topic, giver]
        )
        on = held - held[:, [giver]] - 1
        returned = (held[:, [giver]] < owned[:, [giver]]).astype(np.int64) - (held <= owned)
        may = ((held > 0) & self.reads[:, [giver]] & self.reads[topic] & (off >= 0) & (on >= 0)) & (
            kept + returned == 0
        )
        may[topic] = False
        alone = self.reads[topic] & (off >= 0) & (kept == 0)
        alone &= self.counts == self.counts[giver] - 1
        if self.keep_all:
            stays = held[topic, giver] > owned[topic, giver]
            may &= stays & (held > owned)
            alone &= stays
        gains = np.where(may, off + on, 0)
        return np.vstack((gains, np.where(alone, off, 0)))

    def _swap(self, topic: int, giver: int, back: int, taker: int) -> None:
        moves = [(topic, giver, taker)]
        if back < self.held.shape[0]:
            moves.append((back, taker, giver))
        for what, source, target in moves:
            self.held[what, source] -= 1
            self.held[what, target] += 1
            self.counts[source] -= 1
            self.counts[target] += 1


def _matrix(problem: Problem, owner: Int32) -> Int64:
    matrix = np.zeros((len(problem.topics), len(problem.members)), dtype=np.int64)
    shares = pairs(problem, owner)
    matrix[shares.topic, shares.member] = shares.size
    return matrix


def _deal(problem: Problem, held: Int64) -> Int32:
    """Return owners with `held` partitions of each topic on each member.

    Each member keeps as many of its own partitions as `held` allows.
    """
    owner = problem.owner.copy()
    mine = np.flatnonzero(owner >= 0)
    key = problem.topic_of[mine] * np.int64(held.shape[1]) + owner[mine]
    order = np.argsort(key, kind="stable")
    starts = np.searchsorted(key[order], key[order])
    nth = np.arange(order.size) - starts
    owner[mine[order[nth >= held.ravel()[key[order]]]]] = -1
    missing = held - _matrix(problem, owner)
    free = np.flatnonzero((owner < 0) & problem.assignable)
    topic, member = np.nonzero(missing)
    owner[free] = np.repeat(member, missing[topic, member])
    return owner
