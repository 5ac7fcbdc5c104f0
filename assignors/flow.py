r"""Sticky assignment as a min-cost flow, for subscriptions that differ.

Belongs here: the flow network and its exact solution. Belongs elsewhere: equal subscriptions, for
which `sticky` has a closed form.

The network: classes of partitions -> members -> sink. Partitions of one topic (and one set of
replica racks) differ only in their owner, so a node is a class, not a partition.

    class c --- partitions that m keeps: capacity owned[c, m] ----------> member m
            \-- partitions moved to or placed on m: capacity size[c] --/
    member m --- 1st partition, 2nd, 3rd, ...: ever more expensive -----> sink

Increasing costs make the loads decreasingly minimal: the largest load is as small as possible, then
the second largest, and so on. (The feasible load vectors are the integer points of a base
polyhedron, an M-convex set. In such a set, one vector is best for all symmetric convex costs: Frank
and Murota, "Decreasing minimization on M-convex sets", 2022.) So only the order of the costs
matters, and the smallest integers in this order are used. Several flows can lead to these loads.
Among them, the module prefers flows that keep the most owners, then flows with the most partitions
in the rack of a replica.

An arc for every possible load would take P arcs per member. Instead, each member has arcs for a
window of loads around its expected load; outside the window the cost is linear. This linear cost is
at most the true cost, so a solution with all loads inside their windows is optimal. Otherwise the
windows are moved: first to loads from a coarse grid, then to the loads of the last solution.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from assignors.numbering import within_groups
from assignors.problem import Int32, Int64, Problem

_WINDOW = 4  # how many levels the first window reaches below and above an expected load
_GRID = 16  # number of cells of a grid over the possible loads of a member
_FINER = 4  # each grid has cells of a quarter of the size of the previous grid's cells


@dataclass(frozen=True, eq=False)
class Network:
    """The flow network of a problem: classes of partitions, and arcs to their possible owners.

    Parameters
    ----------
    class_of
        Class of each partition, int64 of shape (P,); -1 if the flow does not assign the partition.
    sizes
        Number of partitions of each class, int64 of shape (C,).
    class_topic
        Topic of each class, int64 of shape (C,).
    arc_class, arc_member, arc_capacity
        The arcs from classes to members, int64 of shape (A,); arcs that keep an owner come first.
    arc_far
        1 if no replica is in the member's rack, 0 if one is or a rack is unknown.
    owned_arcs
        Number of arcs that keep an owner.
    base
        Number of each member's partitions that are not in the network, int64 of shape (M,).
    """

    class_of: Int64
    sizes: Int64
    class_topic: Int64
    arc_class: Int64
    arc_member: Int64
    arc_capacity: Int64
    arc_far: Int64
    owned_arcs: int
    base: Int64

    def tie_breaks(self) -> Int64:
        """Return the cost per partition of each arc, int64 of shape (A,).

        One move costs more than reads from nearer replicas can save in total.
        """
        cost = self.arc_far.copy()
        classes, members = self.sizes.size, self.base.size
        cost[self.owned_arcs :] += _longest_cycle(classes, members) + 1 if cost.any() else 1
        return cost


def solve(problem: Problem, *, keep_all: bool = False) -> Int32:
    """Return the owners with the most even loads, then the fewest moves, then the nearest replicas.

    Parameters
    ----------
    problem
        P partitions, M members.
    keep_all
        Keep every current owner, regardless of loads, and assign only partitions without an owner.

    Returns
    -------
    int32 array of shape (P,): member index, -1 if a topic has no subscriber.
    """
    network = build(problem, keep_all=keep_all)
    return decode(problem, network, _solve_exactly(network))


def build(problem: Problem, *, keep_all: bool = False, by_claims: bool = False) -> Network:
    """Group partitions into classes and list their possible owners.

    With `by_claims`, partitions with different earlier owners are in different classes.
    """
    members = len(problem.members)
    dealt = problem.assignable & ((problem.owner < 0) | (not keep_all))
    class_of, codes, sizes = _classes(problem, dealt, by_claims=by_claims)
    class_topic, class_racks = codes // _rack_kinds(problem), codes % _rack_kinds(problem)

    degree = problem.subscriber_counts[class_topic]
    placing_class = np.repeat(np.arange(codes.size), degree)
    first = problem.subscriber_offsets[class_topic[placing_class]]
    placing_member = problem.subscribers[first + within_groups(degree)].astype(np.int64)

    owned = dealt & (problem.owner >= 0)
    pairs, owned_sizes = np.unique(
        class_of[owned] * members + problem.owner[owned], return_counts=True
    )
    arc_class = np.concatenate((pairs // max(members, 1), placing_class))
    arc_member = np.concatenate((pairs % max(members, 1), placing_member))
    elsewhere = problem.owner[(problem.owner >= 0) & ~dealt]
    return Network(
        class_of=class_of,
        sizes=sizes,
        class_topic=class_topic,
        arc_class=arc_class,
        arc_member=arc_member,
        arc_capacity=np.concatenate((owned_sizes, sizes[placing_class])),
        arc_far=problem.far[class_racks[arc_class], arc_member].astype(np.int64),
        owned_arcs=pairs.size,
        base=np.bincount(elsewhere, minlength=members).astype(np.int64),
    )


def _classes(
    problem: Problem, dealt: npt.NDArray[np.bool_], *, by_claims: bool
) -> tuple[Int64, Int64, Int64]:
    """Return the class of each partition, the code of each class, and the size of each class.

    Each topic has a code; if racks matter, each pair of a topic and a set of replica racks has one.
    """
    code = problem.topic_of.astype(np.int64)
    if problem.rack_set_of is not None and _rack_kinds(problem) > 1:
        code = code * _rack_kinds(problem) + problem.rack_set_of
    kinds = 1
    if by_claims and problem.earlier is not None:
        claims, claim_of = np.unique(problem.earlier, axis=1, return_inverse=True)
        kinds = claims.shape[1]
        code = code * kinds + claim_of
    sizes = np.bincount(code[dealt]).astype(np.int64)
    codes = np.flatnonzero(sizes)
    number = np.cumsum(sizes > 0) - 1
    class_of = np.full(problem.partition_total, -1, dtype=np.int64)
    class_of[dealt] = number[code[dealt]]
    return class_of, codes // kinds, sizes[codes]


def _rack_kinds(problem: Problem) -> int:
    """Return the number of sets of replica racks; 1 if no member has a rack."""
    return len(problem.far) if any(problem.racks) else 1


def _longest_cycle(classes: int, members: int) -> int:
    """Return the maximum number of arcs between classes and members on a simple cycle.

    A flow is optimal if no cycle improves it. So one unit of an important cost must exceed what all
    less important costs can save along a cycle.
    """
    return 2 * min(classes, members) + 2


def _solve_exactly(network: Network) -> Int64:
    """Return an optimal flow: the number of partitions on each arc, int64 of shape (A,)."""
    if not network.sizes.size:
        return np.zeros(network.arc_class.size, dtype=np.int64)
    readers = np.unique(network.arc_member)
    total = int(network.sizes.sum() + network.base[readers].sum())
    expected = np.full(network.base.size, total // readers.size, dtype=np.int64)
    windows = list_windows(network, expected - 1, expected + 2)
    flow, loads = _solve_in(network, windows)
    reach = _WINDOW
    while not windows.hold(loads):
        centre = _refine(network) if reach == _WINDOW else loads
        windows = list_windows(network, centre - reach, centre + reach)
        flow, loads = _solve_in(network, windows)
        reach *= 2
    return flow


def _refine(network: Network) -> Int64:
    """Find loads near the optimum: on a coarse grid first, then on finer ones."""
    top = int(network.sizes.sum() + network.base.max())
    step = 1
    while step * _GRID < top:
        step *= _FINER
    low, high = np.zeros_like(network.base), np.full_like(network.base, top)
    while True:
        _, loads = _solve_in(network, list_windows(network, low, high, step=step), break_ties=False)
        if step == 1:
            return loads
        step //= _FINER
        low, high = loads - step * _GRID // 2, loads + step * _GRID // 2


@dataclass(frozen=True, eq=False)
class Windows:
    """Each member's arcs to the sink, and its window: the loads from `low` to `high`.

    Inside its window, a member has an arc for each level. A level is one more partition or, on a
    coarse grid, one more cell of several partitions. `low` and `high` are int64 of shape (M,). The
    other arrays have a value for each of the L arcs.
    """

    low: Int64
    high: Int64
    member: Int64
    capacity: Int64
    price: Int64

    def hold(self, loads: Int64) -> bool:
        """Whether all loads are inside the windows, so that the costs are exact."""
        return bool(((loads >= self.low) & (loads <= self.high)).all())


def list_windows(network: Network, low: Int64, high: Int64, *, step: int = 1) -> Windows:
    """Return each member's arcs to the sink: one per level of its window, one below, one above.

    `step` is the number of partitions in a level. The price of a level is its rank, because only
    the order matters, and the solver is faster with small prices.
    """
    total = int(network.sizes.sum())
    low = np.maximum(low // step * step, network.base)
    steps = np.maximum(-(-(high - low) // step), 1)
    high = low + steps * step
    readers = np.unique(network.arc_member)
    member = np.repeat(readers, steps[readers])
    nth = within_groups(steps[readers])
    member = np.concatenate((readers, member, readers))
    level = np.concatenate(
        (
            low[readers],
            low[member[readers.size : -readers.size]] + (nth + 1) * step,
            high[readers] + step,
        )
    )
    capacity = np.concatenate(
        ((low - network.base)[readers], np.full(nth.size, step), np.full(readers.size, total))
    )
    price = np.searchsorted(np.unique(level), level)
    return Windows(low, high, member, capacity, price)


def _solve_in(
    network: Network, windows: Windows, *, break_ties: bool = True
) -> tuple[Int64, Int64]:
    """Return the flow on each arc from a class to a member, and each member's whole load."""
    from ortools.graph.python import min_cost_flow  # noqa: PLC0415 - a slow import, often not needed

    classes, members = network.sizes.size, network.base.size
    arcs = slice(0 if break_ties else network.owned_arcs, None)
    head, tail = network.arc_class[arcs], classes + network.arc_member[arcs]
    tie, level_price = network.tie_breaks()[arcs], 1
    if break_ties:
        level_price = _longest_cycle(classes, members) * int(tie.max()) + 1
    else:
        tie = np.zeros_like(tie)
    sink = classes + members
    solver = min_cost_flow.SimpleMinCostFlow()
    between = solver.add_arcs_with_capacity_and_unit_cost(
        head, tail, network.arc_capacity[arcs], tie
    )
    solver.add_arcs_with_capacity_and_unit_cost(
        classes + windows.member,
        np.full(windows.member.size, sink),
        windows.capacity,
        windows.price * level_price,
    )
    supplies = np.concatenate((network.sizes, np.zeros(members, np.int64), [-network.sizes.sum()]))
    solver.set_nodes_supplies(np.arange(sink + 1), supplies)
    status = solver.solve()
    if status != solver.OPTIMAL:
        raise RuntimeError(f"the min-cost flow of the assignment is {status}, not OPTIMAL")
    flow = np.zeros(network.arc_class.size, dtype=np.int64)
    flow[arcs] = solver.flows(between)
    received = np.bincount(network.arc_member, weights=flow, minlength=members)
    return flow, network.base + received.astype(np.int64)


def decode(problem: Problem, network: Network, flow: Int64, *, turns: bool = False) -> Int32:
    """Return the owners that a flow describes.

    If an owner keeps only some partitions of a class, it keeps those with the lowest numbers.

    Parameters
    ----------
    flow
        Flow on each arc from a class to a member, int64 of shape (A,).
    turns
        Deal partitions to members in turns; otherwise each member gets a block of partitions.
    """
    members = len(problem.members)
    owner = problem.owner.copy()
    keeping, placing = flow[: network.owned_arcs], flow[network.owned_arcs :]
    owned = np.flatnonzero((owner >= 0) & (network.class_of >= 0))
    if not np.array_equal(keeping, network.arc_capacity[: network.owned_arcs]):
        pair = network.class_of[owned] * members + owner[owned]
        order = np.argsort(pair, kind="stable")
        sizes = network.arc_capacity[: network.owned_arcs]
        owner[owned[order[within_groups(sizes) >= np.repeat(keeping, sizes)]]] = -1
    free = np.flatnonzero((owner < 0) & (network.class_of >= 0))
    free = free[np.argsort(network.class_of[free], kind="stable")]
    dealt = np.repeat(np.arange(placing.size), placing)
    member = network.arc_member[network.owned_arcs :]
    if turns:
        pace = (within_groups(placing) + 0.5) / placing[dealt]
        dealt = dealt[np.lexsort((dealt, pace, network.arc_class[network.owned_arcs :][dealt]))]
    owner[free] = member[dealt]
    return owner
