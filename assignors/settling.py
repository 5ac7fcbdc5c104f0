"""Exchanges at the end of a lag-aware plan: they spread topics or reduce cross-rack traffic.

They do not increase the number of moved partitions.

Belongs here: a bounded search among plans with the same number of moves. Belongs elsewhere: the
moves of a plan (`relief`, `path`).
"""

import numpy as np

from assignors.problem import Float64, Int32, Int64, Problem
from assignors.racks import far_partitions
from assignors.spread import even_shares, is_even, pairs

# In groups with more partitions than this, only the partitions that move are examined.
_FEW = 5_000
# Maximum number of comparisons between two partitions: some hundredths of a second.
_WORK = 500_000
# Share of all traffic. Smaller gains count as rounding errors.
_ROUNDING = 1e-9


def settle(problem: Problem, owner: Int32, weights: Float64) -> Int32:
    """Exchange pairs of partitions to spread topics or reduce cross-rack traffic.

    The number of moves and the highest load stay the same. An exchange does not raise the higher of
    its two members' loads. If the plan leaves a partition with its owner, an exchange can move it
    only if another partition of the same weight stays instead. Exchanges that spread a topic come
    first, then those that save most cross-rack traffic.

    Parameters
    ----------
    problem
        P partitions, M members. Traffic is `arrival_rates`; if these are unknown, all partitions
        count as having the same traffic.
    owner
        Owners in the plan, int32 of shape (P,).
    weights
        Load of each partition, float64 of shape (P,).

    Returns
    -------
    int32 array of shape (P,).

    Notes
    -----
    In groups with up to 5,000 partitions, all are examined; in larger groups, only those that move.
    Each moved partition is compared with all examined ones, with at most 500,000 comparisons in
    all. The search ends when no single exchange helps, even if several together would.
    """
    changed = (owner != problem.owner) & (owner >= 0)
    pool = np.flatnonzero(changed if owner.size > _FEW else owner >= 0)
    if not changed.any() or not problem.dense:
        return owner
    topics = problem.topic_of[pool]
    if problem.rack_set_of is None and (topics == topics[0]).all():
        return owner  # no exchange helps
    if is_even(problem, owner) and not far_partitions(problem, owner).any():
        return owner
    search = _SettlingSearch(problem, owner, weights, pool)
    search.run()
    settled = owner.copy()
    settled[pool] = search.holder
    return settled


def stand_ins(problem: Problem, plan: Int32, settled: Int32) -> dict[int, int]:
    """Map each partition that moves only because of `settle` to one that stays instead.

    Both partitions have the same present owner.
    """
    before = (problem.owner >= 0) & (plan != problem.owner)
    after = (problem.owner >= 0) & (settled != problem.owner)
    new, replaced = np.flatnonzero(after & ~before), np.flatnonzero(before & ~after)
    new, replaced = (row[np.argsort(problem.owner[row], kind="stable")] for row in (new, replaced))
    return dict(zip(new.tolist(), replaced.tolist(), strict=True))


class _SettlingSearch:
    """The search of `settle`. K partitions are examined; arrays of their values have shape (K,)."""

    def __init__(self, problem: Problem, owner: Int32, weights: Float64, pool: Int64) -> None:
        members = len(problem.members)
        self.reads = problem.reads
        self.topic = problem.topic_of[pool]
        self.home = problem.owner[pool]
        self.weight = weights[pool]
        self.holder = owner[pool].copy()
        self.capacities = problem.capacities
        self.even = even_shares(problem)
        shares = pairs(problem, owner)
        self.held = np.zeros((len(problem.topics), members), dtype=np.int64)
        self.held[shares.topic, shares.member] = shares.size
        assigned = owner >= 0
        work = np.bincount(owner[assigned], weights=weights[assigned], minlength=members)
        self.loads: Float64 = work / problem.capacities
        self.peak = float(self.loads.max())
        self.racks = problem.rack_set_of is not None
        sets = (
            np.zeros(owner.size, np.int32) if problem.rack_set_of is None else problem.rack_set_of
        )
        self.set_of, self.far = sets[pool], problem.far.astype(np.int64)
        rates = problem.arrival_rates
        self.traffic = np.ones(pool.size) if rates is None else rates[pool]
        self.least = float(self.traffic.sum()) * _ROUNDING

    def run(self) -> None:
        """Make the best exchange of each partition in turn, until none helps."""
        left, improved = _WORK, True
        while improved:
            improved = False
            improvable = self.held[self.topic, self.holder] > self.even[self.topic]
            improvable |= self.far[self.set_of, self.holder] > 0
            if not improvable.any():
                return
            # Every exchange includes a partition that moves, so only partitions that move are
            # tried. If all partitions move, only those that an exchange can improve are tried.
            changed = self.holder != self.home
            order = np.flatnonzero(changed if not changed.all() else improvable)
            for at in order[np.argsort(-self.traffic[order], kind="stable")].tolist():
                left -= self.topic.size
                if left < 0:
                    return
                improved |= self._exchange(at)

    def _exchange(self, at: int) -> bool:
        """Make the best exchange of a partition, if one helps; return whether one did."""
        spread, near = self._gains(at)
        worth = (spread > 0) | ((spread == 0) & (near > self.least))
        if not worth.any():
            return False
        chosen = np.flatnonzero(worth)
        other = int(chosen[np.lexsort((chosen, -near[chosen], -spread[chosen]))[0]])
        mine, theirs = int(self.holder[at]), int(self.holder[other])
        shift = self.weight[other] - self.weight[at]
        self.loads[mine] += shift / self.capacities[mine]
        self.loads[theirs] -= shift / self.capacities[theirs]
        for what, source, target in ((at, mine, theirs), (other, theirs, mine)):
            self.held[self.topic[what], source] -= 1
            self.held[self.topic[what], target] += 1
            self.holder[what] = target
        return True

    def _gains(self, at: int) -> tuple[Int64, Float64]:
        """Return the gains from exchanging partition `at` with each of the K partitions.

        The first array is the gain in spread, -1 if the exchange is not allowed. The second is the
        cross-rack traffic saved. Both have shape (K,).
        """
        mine, theirs = self.holder[at], self.holder
        topic, topics = self.topic[at], self.topic
        off = self.held[topic, mine] - self.held[topic, theirs] - 1
        on = self.held[topics, theirs] - self.held[topics, mine] - 1
        same = topics == topic
        may = self.reads[topic, theirs] & self.reads[topics, mine] & (theirs != mine)
        may &= same | ((off >= 0) & (on >= 0))
        moved_now = self._moved(at, mine) + self._moved(slice(None), theirs)
        may &= moved_now == self._moved(at, theirs) + self._moved(slice(None), mine)
        stays = (mine == self.home[at]) | (theirs == self.home)
        shift = self.weight - self.weight[at]
        high, low = self.loads[mine], self.loads[theirs]
        after = np.maximum(
            high + shift / self.capacities[mine], low - shift / self.capacities[theirs]
        )
        lighter = (after <= np.maximum(high, low)) & (np.maximum(high, low) < self.peak)
        may &= (lighter & ~stays) | (shift == 0)
        spread = np.where(may, np.where(same, 0, off + on), -1)
        if not self.racks:
            return spread, np.zeros(spread.size)
        far, sets = self.far, self.set_of
        near = self.traffic[at] * (far[sets[at], mine] - far[sets[at], theirs])
        near = near + self.traffic * (far[sets, theirs] - far[sets, mine])
        return spread, near

    def _moved(self, which: int | slice, holder: Int32) -> Int64:
        """Return 1 for each partition that would leave its original owner, else 0."""
        home = self.home[which]
        moved: Int64 = np.asarray((home >= 0) & (home != holder), dtype=np.int64)
        return moved
