"""Lower bounds on the load of the most loaded member.

Belongs here: bounds for every assignment of a problem. Belongs elsewhere: finding an assignment.

The load of the most loaded member has two lower bounds. The first is the heaviest partition, since
one member gets all of it. The second is a mean: only the readers of a set of topics can own these
topics' partitions, so one reader has at least the mean load of all readers. The set of all topics
gives the plain mean; if subscriptions differ, a set with few readers may have a higher mean.

Max-flow min-cut finds the set with the highest mean. `bound` is the plain mean at first. Loads of
topics flow to the members that read them, and each member takes at most `bound` x its capacity. If
some load does not fit, the cut is a set of topics with a mean above `bound`, and this mean is the
next `bound` (Dinkelbach's method). If all loads fit, no set has a higher mean than `bound`.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from assignors.problem import Float64, Problem

_Mask = npt.NDArray[np.bool_]
_FLOW_UNITS = 2.0**44
_TOLERANCE = 1e-9


@lru_cache(maxsize=1)  # all candidate plans of a group have the same bound
def lag_lower_bound(problem: Problem) -> int:
    """Return a lower bound on the most loaded member's lag, in records, for all assignments.

    Examples
    --------
    Two members share `u`, but only `a` may read `t`:

    >>> members = {"a": ["t", "u"], "b": ["u"]}
    >>> lag_lower_bound(Problem.of({"t": 2, "u": 1}, members, {"t": [50, 30], "u": [10]}))
    80
    """
    weights = problem.exact_weights
    loads, _ = _topic_loads(problem, weights)
    if not loads.any():
        return 0
    ones = np.ones(len(problem.members))
    tightest = _tightest(problem, loads.astype(np.float64), ones)
    total = int(loads[tightest].sum())
    readers = int(_read_any(problem, tightest).sum())
    return max(int(weights[problem.assignable].max()), -(-total // readers))


class LoadBound(NamedTuple):
    """Lower bounds on the largest load; a load is weight divided by capacity.

    `shared` is the mean load of a set of topics on the members that read these topics. `alone` is
    the load of one heavy partition on the strongest member that may read it. `partition` is the
    index of this partition, -1 if there is no load.
    """

    shared: float
    alone: float
    partition: int

    @property
    def load(self) -> float:
        """The larger of both bounds."""
        return max(self.shared, self.alone)


def load_lower_bound(problem: Problem, weights: Float64) -> LoadBound:
    """Return the lower bounds on the largest load, which hold for every assignment.

    Parameters
    ----------
    problem
        P partitions, M members with capacities.
    weights
        Weight of each partition, shape (P,), finite and non-negative.
    """
    loads, heaviest = _topic_loads(problem, weights)
    if not loads.any():
        return LoadBound(0.0, 0.0, -1)
    tightest = _tightest(problem, loads, problem.capacities)
    capacity = problem.capacities[_read_any(problem, tightest)].sum()
    strongest = np.full(len(problem.topics), np.inf)
    subscribed = np.flatnonzero(problem.subscriber_counts)
    strongest[subscribed] = np.maximum.reduceat(
        problem.capacities[problem.subscribers], problem.subscriber_offsets[subscribed]
    )
    alone = heaviest / strongest
    topic = int(np.argmax(alone))
    first, last = problem.topic_offsets[topic : topic + 2]
    return LoadBound(
        shared=float(loads[tightest].sum() / capacity),
        alone=float(alone[topic]),
        partition=int(first + np.argmax(weights[first:last])),
    )


def _topic_loads(
    problem: Problem, weights: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the sum and maximum of each topic's weights, shape (T,); 0 for an unread topic."""
    sums = np.zeros(len(problem.topics), dtype=weights.dtype)
    tops = np.zeros(len(problem.topics), dtype=weights.dtype)
    filled = np.flatnonzero((problem.partition_counts > 0) & (problem.subscriber_counts > 0))
    if filled.size:
        everything = np.flatnonzero(problem.partition_counts > 0)
        starts = problem.topic_offsets[everything]
        readable = problem.subscriber_counts[everything] > 0
        sums[filled] = np.add.reduceat(weights, starts)[readable]
        tops[filled] = np.maximum.reduceat(weights, starts)[readable]
    return sums, tops


def _read_any(problem: Problem, topics: _Mask) -> _Mask:
    """Return which members read at least one topic of a set, bool of shape (M,)."""
    readers = np.zeros(len(problem.members), dtype=bool)
    chosen = np.repeat(topics, problem.subscriber_counts)
    readers[problem.subscribers[chosen]] = True
    return readers


def _tightest(problem: Problem, loads: Float64, capacities: Float64) -> _Mask:
    """Find the set of topics with the highest mean load on its readers, bool of shape (T,)."""
    topics = loads > 0
    if problem.equal_subscriptions:
        return topics
    bound = loads.sum() / capacities[_read_any(problem, topics)].sum()
    while True:
        excess = _overfull(problem, loads, capacities * bound)
        if not excess.any():
            return topics
        denser = loads[excess].sum() / capacities[_read_any(problem, excess)].sum()
        if denser <= bound * (1 + _TOLERANCE):
            return topics
        topics, bound = excess, denser


def _overfull(problem: Problem, loads: Float64, room: Float64) -> _Mask:
    """Find a set of topics whose load exceeds the room of their readers; empty if there is none."""
    from ortools.graph.python import max_flow  # noqa: PLC0415 - a slow import, often not needed

    topics, members = loads.size, room.size
    source, sink = topics + members, topics + members + 1
    unit = _FLOW_UNITS / loads.sum()
    supply = np.floor(loads * unit).astype(np.int64)
    # Round the room up: otherwise a rounding error could make topics seem to exceed the room.
    taken = np.minimum(np.ceil(room * unit), 2 * _FLOW_UNITS).astype(np.int64) + 1
    solver = max_flow.SimpleMaxFlow()
    topic = np.arange(topics)
    member = topics + np.arange(members)
    reads = np.repeat(topic, problem.subscriber_counts)
    solver.add_arcs_with_capacity(np.full(topics, source), topic, supply)
    solver.add_arcs_with_capacity(reads, topics + problem.subscribers, supply[reads])
    solver.add_arcs_with_capacity(member, np.full(members, sink), taken)
    if solver.solve(source, sink) != solver.OPTIMAL:
        raise RuntimeError("the lower bound could not be computed: the maximum flow was not found")
    overfull = np.zeros(topics, dtype=bool)
    if solver.optimal_flow() < supply.sum():
        cut = np.array(solver.get_source_side_min_cut())
        overfull[cut[cut < topics]] = True
    return overfull
