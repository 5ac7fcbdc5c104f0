"""All aims of `sticky` in one min-cost flow, in which each aim outweighs all later aims.

Belongs here: the network with a node for each topic on each member, and its costs. Belongs
elsewhere: the smaller network of loads and owners, which solves far larger problems (`flow`).

    class c --- kept, moved or placed partitions ----> topic of c on member m
    topic on member m --- 1st partition, 2nd, 3rd: more expensive ----> member m
    member m --- arcs as in `flow`, for loads near the solution of `flow` ----> sink

A class is a set of partitions of one topic with the same replica racks and earlier owners.

The aims in their order:

1. loads, decreasingly minimal (see `sticky`);
2. partitions kept;
3. spread: first, the ratio of a topic's largest share to its even share, for the topic where this
   ratio is highest; then topics on as many members as possible; then the sum of squared shares;
4. older claims: partitions that return to their newest earlier owner, then to the owner before
   that one, and so on;
5. racks: partitions read from a replica in the member's rack.

All these figures except the ratio are sums of arc costs, so one flow optimises them in order. The
ratio is an upper limit that the network imposes on every topic. The module lowers this limit and
solves the network again, until the loads or the number of kept partitions would get worse.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from assignors import flow
from assignors.assignment import Assignment
from assignors.numbering import within_groups
from assignors.problem import Int32, Int64, Problem
from assignors.spread import Pairs, even_shares, pairs, worst

Mask = npt.NDArray[np.bool_]

# Maximum number of arcs: solving such a network takes about 20 ms. If there would be more arcs,
# bounded searches replace the flow.
_MOST_ARCS = 10_000
# Maximum of highest cost x number of nodes: the solver computes this product in 64 bits.
_HIGHEST_COST = 2**60


def solve(problem: Problem, owner: Int32, *, keep_all: bool = False) -> Int32 | None:
    """Return the assignment that is best in all aims, in their order.

    Parameters
    ----------
    problem
        P partitions, M members.
    owner
        An assignment with the best loads and the fewest moves, as returned by `flow.solve` with the
        same `keep_all`; int32 of shape (P,).
    keep_all
        Keep every current owner, even if loads become uneven.

    Returns
    -------
    int32 array of shape (P,); None if the flow network would be too large or OR-Tools is missing.
    """
    if _units(problem, (1, 1)) > _MOST_ARCS or not _has_solver():
        return None
    best, ceiling = None, worst(problem, owner)
    if _units(problem, ceiling) > _MOST_ARCS:
        return None
    graph = _Graph.of(problem, owner, keep_all=keep_all)
    target = _loads_and_kept(problem, owner)
    while True:
        strictly = best is not None
        found = graph.solve(_most(problem, ceiling, strictly=strictly))
        if found is None or (strictly and _loads_and_kept(problem, found) != target):
            return best
        best, ceiling = found, worst(problem, found)
        if ceiling[0] <= ceiling[1]:
            return best


def _most(problem: Problem, ceiling: tuple[int, int], *, strictly: bool = False) -> Int64:
    """Return how many partitions of each topic a member may have, int64 of shape (T,).

    `ceiling`: the maximum ratio of a topic's largest share to its even share, as numerator and
    denominator. `strictly`: stay below this ratio.
    """
    share, even = ceiling
    return (share * even_shares(problem) - strictly) // even


def _units(problem: Problem, ceiling: tuple[int, int]) -> int:
    """Return an upper bound on the network's number of arcs; `ceiling` as for `_most`."""
    most = np.minimum(_most(problem, ceiling), problem.partition_counts)
    classes = 0 if problem.earlier is None else problem.partition_counts
    return int(((most + classes) * problem.subscriber_counts).sum())


def _has_solver() -> bool:
    """Whether OR-Tools is installed. Groups with equal subscriptions do not need it."""
    return find_spec("ortools") is not None


def _loads_and_kept(problem: Problem, owner: Int32) -> tuple[list[int], int]:
    kept = int(((owner == problem.owner) & (owner >= 0)).sum())
    return np.sort(Assignment(problem, owner).counts).tolist(), kept


@dataclass(frozen=True, eq=False)
class _Graph:
    """The parts of the network that do not depend on the maximum share of a topic on a member."""

    problem: Problem
    network: flow.Network
    #: For each member, the loads from one below to one above its load in the best assignment. All
    #: equally good loads are in these windows (Frank and Murota: they form a shifted matroid).
    windows: flow.Windows
    #: For each arc of the network: index of its pair of topic and member, int64 of shape (A,).
    arc_pair: Int64
    pair_topic: Int64
    pair_member: Int64
    #: For each pair, the number of partitions of the topic that stay on the member because the
    #: network does not contain them, int64 of shape (K,).
    pair_base: Int64
    #: For each topic and member, the number of partitions that keep their owners and therefore
    #: are not in the network.
    fixed: Pairs

    @classmethod
    def of(cls, problem: Problem, owner: Int32, *, keep_all: bool) -> "_Graph":
        network = flow.build(problem, keep_all=keep_all, by_claims=True)
        members = max(len(problem.members), 1)
        code = network.class_topic[network.arc_class] * members + network.arc_member
        codes, arc_pair = np.unique(code, return_inverse=True)
        fixed = np.where(network.class_of < 0, problem.owner, -1).astype(np.int32)
        besides = pairs(problem, fixed)
        base = np.zeros(codes.size, dtype=np.int64)
        at = np.searchsorted(codes, besides.topic * members + besides.member)
        inside = at < codes.size
        inside[inside] = codes[at[inside]] == (besides.topic * members + besides.member)[inside]
        base[at[inside]] = besides.size[inside]
        loads = Assignment(problem, owner).counts
        return cls(
            problem=problem,
            network=network,
            windows=flow.list_windows(network, loads - 1, loads + 1),
            arc_pair=arc_pair,
            pair_topic=codes // members,
            pair_member=codes % members,
            pair_base=base,
            fixed=besides,
        )

    def solve(self, most: Int64) -> Int32 | None:
        """Return the best owners with at most `most` partitions of each topic on a member.

        None: no assignment is within `most`, or the costs would be too large for the solver.
        """
        network = self.network
        if (self.fixed.size > most[self.fixed.topic]).any():
            return None
        if not network.sizes.size:
            return self.problem.owner
        room = np.minimum(most, self.problem.partition_counts)[self.pair_topic] - self.pair_base
        pair = np.repeat(np.arange(room.size), room)
        nth = within_groups(room) + self.pair_base[pair]
        moves = np.arange(network.arc_class.size) >= network.owned_arcs
        misses = self._missed_claims()
        classes, members = 2 * network.sizes.size, 2 * network.base.size
        far, *missed, square, spot, move, level = _prices(
            [
                (network.arc_far, classes),
                *((miss, classes) for miss in reversed(misses)),
                (nth, members),
                (nth > 0, members),
                (moves, classes),
                (self.windows.price, 2),
            ]
        )
        arc_cost = far * network.arc_far + move * moves
        for price, miss in zip(reversed(missed), misses, strict=True):
            arc_cost += price * miss
        unit_cost = square * nth + spot * (nth > 0)
        if max(level * int(self.windows.price.max()), 1) > _HIGHEST_COST // sum(self._nodes()):
            return None
        return self._flow(arc_cost, pair, unit_cost, level * self.windows.price)

    def _missed_claims(self) -> list[Mask]:
        """Return a mask per row of `Problem.earlier`: arcs that do not lead to the earlier owner.

        A row has one earlier owner of each partition, or -1 if there is none: then no arc is in the
        mask. The partitions on an arc belong to one class, so they have the same earlier owners.
        """
        network, earlier = self.network, self.problem.earlier
        if earlier is None:
            return []
        dealt = np.flatnonzero(network.class_of >= 0)
        any_of = np.zeros(network.sizes.size, dtype=np.int64)
        any_of[network.class_of[dealt]] = dealt
        claimant = earlier[:, any_of[network.arc_class]]
        return list((claimant >= 0) & (claimant != network.arc_member))

    def _nodes(self) -> tuple[int, int, int, int]:
        """Return the numbers of nodes: classes, pairs of topic and member, members, and sinks."""
        return self.network.sizes.size, self.pair_topic.size, self.network.base.size, 1

    def _flow(
        self, arc_cost: Int64, pair: Int64, unit_cost: Int64, level_cost: Int64
    ) -> Int32 | None:
        from ortools.graph.python import min_cost_flow  # noqa: PLC0415 - a slow import, often not needed

        network, windows = self.network, self.windows
        classes, sorts, members, _ = self._nodes()
        sink = classes + sorts + members
        solver = min_cost_flow.SimpleMinCostFlow()
        between = solver.add_arcs_with_capacity_and_unit_cost(
            network.arc_class, classes + self.arc_pair, network.arc_capacity, arc_cost
        )
        solver.add_arcs_with_capacity_and_unit_cost(
            classes + pair,
            classes + sorts + self.pair_member[pair],
            np.ones(pair.size, np.int64),
            unit_cost,
        )
        solver.add_arcs_with_capacity_and_unit_cost(
            classes + sorts + windows.member,
            np.full(windows.member.size, sink),
            windows.capacity,
            level_cost,
        )
        empty = np.zeros(sorts + members, np.int64)
        solver.set_nodes_supplies(
            np.arange(sink + 1), np.concatenate((network.sizes, empty, [-network.sizes.sum()]))
        )
        if solver.solve() != solver.OPTIMAL:
            return None
        return flow.decode(self.problem, network, np.asarray(solver.flows(between)), turns=True)


def _prices(aims: list[tuple[npt.NDArray[Any], int]]) -> list[int]:
    """Return a price for each aim that all less important aims together never outweigh.

    A flow is optimal if no cycle of arcs improves it. So the price of an aim only has to exceed
    what the less important aims can gain along one cycle.

    Parameters
    ----------
    aims
        The least important aim first. Each aim is a pair: the cost of each arc, in the aim's own
        unit, and the maximum number of arcs with such costs on a simple cycle of the network.
    """
    prices, gain = [], 0
    for costs, arcs in aims:
        prices.append(gain + 1)
        gain += prices[-1] * int(costs.max(initial=0)) * arcs
    return prices
