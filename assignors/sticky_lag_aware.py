"""Sticky lag-aware assignment: keep the owners, and move few partitions to balance the lag.

Belongs here: the options, their limits, and the start of the plan. Belongs elsewhere: placing
partitions without an owner (`placement`), finding moves (`relief`), the number of moves (`path`).
"""

import numpy as np

from assignors import flow, options
from assignors.assignment import Assignment
from assignors.effort import Effort
from assignors.filling import fill
from assignors.ledger import NO_LIMIT, Ledger, Limits
from assignors.path import Goal, Path
from assignors.placement import place
from assignors.problem import Float64, Int64, InvalidProblemError, Problem
from assignors.relief import relieve
from assignors.sticky import sticky

# Maximum work of a partition in records; with more work, members' loads could overflow floats.
_MOST_WORK = 1e200


def sticky_lag_aware(
    problem: Problem,
    *,
    band: float = 0.05,
    band_floor: float = 0.0,
    enough: float | None = None,
    horizon: float = 0.0,
    max_moves: int | None = None,
    max_count_skew: int | None = None,
    max_topic_count_skew: int | None = None,
    effort: int | None = 200_000,
) -> Assignment:
    """Keep the owners, place orphans, then relieve the most loaded member step by step.

    Orphans are partitions without an owner. A partition's work is lag + arrival rate x horizon; a
    member's load is the work of its partitions divided by its capacity. The highest load is
    compared with a lower bound that holds for all assignments.

    Parameters
    ----------
    problem
        P partitions, M members.
    band
        Do nothing while the highest load is at most this share above the lower bound.
    band_floor
        Do nothing while the highest load is at most this many records above the lower bound.
    enough
        A load that is low enough: no partition moves while the highest load is at or below it.
        None: only the band decides.
    horizon
        Number of seconds ahead for which arrivals count as work. If 0, or if rates are unknown,
        only lag counts.
    max_moves
        Maximum number of moved partitions; None: no limit. Orphans do not count: all are placed.
    max_count_skew
        Limit on the difference between the largest and the smallest partition count of a member:
        the difference under `sticky`, plus this number. None: no limit. If the present counts
        exceed the limit, they are evened out first, if `max_moves` allows this. Only this step may
        raise the highest load.
    max_topic_count_skew
        By how much a member's partitions of a topic may exceed the topic's even share; None: no
        limit.
    effort
        Maximum number of pairs of members to compare; None: no limit. With this limit, planning
        takes seconds, even if a group is very large or the limits above are narrow. Once the effort
        is spent, the best plan so far is returned, and the plan's outcome states this.

    Returns
    -------
    Assignment
        With outcome, a reason for every move, and the frontier: the highest load after each number
        of moves, also beyond `max_moves`. The highest load never rises, except when counts are
        evened out. A larger `max_moves` never leads to a higher load.

    Notes
    -----
    Greedy: the next step is the one that removes the most excess load for each partition moved
    (`relief`). If the band cannot be reached, and the last steps together relieve almost nothing,
    these steps are omitted. No partition without work moves to balance loads.

    Examples
    --------
    >>> from assignors.problem import Member
    >>> members = {"a": Member(["t"], owned={"t": [0, 1, 2]}), "b": ["t"]}
    >>> problem = Problem.of({"t": 3}, members, {"t": [60, 50, 10]})
    >>> plan = sticky_lag_aware(problem)
    >>> plan.by_member()
    {'a': {'t': [1, 2]}, 'b': {'t': [0]}}
    >>> plan.frontier
    (Spent(moves=0, highest_load=120.0), Spent(moves=1, highest_load=60.0))
    >>> plan.reasons
    {0: 'relieves a, whose load is 100.0% above the lower bound'}
    """
    options.non_negative("band", band)
    options.non_negative("band_floor", band_floor)
    if enough is not None:
        options.non_negative("enough", enough)
    options.non_negative("horizon", horizon)
    options.count_or_none("max_moves", max_moves)
    options.count_or_none("max_count_skew", max_count_skew)
    options.count_or_none("max_topic_count_skew", max_topic_count_skew)
    options.count_or_none("effort", effort)
    budget = Effort(effort)
    weights = _predicted_work(problem, horizon)
    goal = Goal.of(problem, weights, band, band_floor, enough)
    ledger = _start(
        problem,
        weights,
        goal,
        max_moves=max_moves,
        count_skew=max_count_skew,
        topic_skew=max_topic_count_skew,
        effort=budget,
    )
    return Path(problem, ledger, goal, max_moves=max_moves, effort=budget).finish()


def _predicted_work(problem: Problem, horizon: float) -> Float64:
    work = problem.weights.astype(np.float64)
    if horizon and problem.arrival_rates is not None:
        if float(problem.arrival_rates.max(initial=0.0)) > _MOST_WORK / horizon:
            raise InvalidProblemError(
                "options.horizon: is too long: the predicted work exceeds the range of a float"
            )
        work += problem.arrival_rates * horizon
    return work


def _start(
    problem: Problem,
    weights: Float64,
    goal: Goal,
    *,
    max_moves: int | None,
    count_skew: int | None,
    topic_skew: int | None,
    effort: Effort,
) -> Ledger:
    """Return the state before the first step: all partitions placed, within limits if possible."""
    limits = _limits(problem, count_skew, topic_skew)
    ledger = _keep_and_place(problem, weights, limits, even=count_skew is not None)
    if ((ledger.counts < limits.fewest) | (ledger.counts > limits.most)).any():
        even = sticky(problem).owner
        evened = int(((even != problem.owner) & (problem.owner >= 0)).sum())
        if max_moves is None or evened <= max_moves:
            ledger = Ledger(problem, even, weights, limits)
    orphans = problem.owner < 0
    if goal.bound and orphans.any():
        # Orphans have no present owner, so they can change places here without counting as moves.
        for _ in relieve(ledger, orphans, target=goal.renewed, effort=effort):
            pass
    return ledger


def _limits(problem: Problem, count_skew: int | None, topic_skew: int | None) -> Limits:
    none = Limits.none(problem)
    fewest, most, most_of_topic = none.fewest, none.most, none.most_of_topic
    # A skew above the number of partitions limits nothing, and could overflow int64.
    everything = problem.partition_total
    if count_skew is not None:
        fewest, most = _even_counts(problem)
        # Half of count_skew lowers the minimum count, the other half raises the maximum.
        skew = min(count_skew, 2 * everything)
        fewest, most = fewest - skew // 2, most + (skew - skew // 2)
    if topic_skew is not None:
        readers = np.maximum(problem.subscriber_counts, 1)
        most_of_topic = -(-problem.partition_counts // readers) + min(topic_skew, everything)
    return Limits(fewest, most, most_of_topic)


def _even_counts(problem: Problem) -> tuple[Int64, Int64]:
    """Return each member's minimum and maximum count in assignments with the most even counts."""
    if not problem.equal_subscriptions:
        counts = sticky(problem).counts
        return counts, counts
    share, rest = divmod(int(problem.assignable.sum()), max(problem.readers.size, 1))
    fewest = np.zeros(len(problem.members), dtype=np.int64)
    fewest[problem.readers] = share
    return fewest, fewest + (rest > 0)


def _keep_and_place(problem: Problem, weights: Float64, limits: Limits, *, even: bool) -> Ledger:
    orphans = np.flatnonzero((problem.owner < 0) & problem.assignable)
    room = _even_room(problem, orphans.size) if even else np.full(limits.most.size, NO_LIMIT)
    while_placing = Limits(limits.fewest, room, limits.most_of_topic)
    ledger = Ledger(problem, problem.owner, weights, while_placing)
    place(ledger, orphans)
    ledger.limits = limits
    return ledger


def _even_room(problem: Problem, orphans: int) -> Int64:
    """Return each member's partition count if orphans are placed by counts only, not by load."""
    if not problem.equal_subscriptions:
        return Assignment(problem, flow.solve(problem, keep_all=True)).counts
    counts = Assignment(problem, problem.owner).counts
    readers = problem.readers
    received = np.bincount(fill(counts[readers], orphans), minlength=readers.size)
    counts[readers] += received
    return counts
