"""Candidates: the assignment of each assignor, with its forecast.

Belongs here: the input of assignors, limits for `sticky-lag-aware`, and the figures of candidates.
Does not: choosing a candidate (`decide`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from assignors.assignment import Assignment
from assignors.metrics import moved_partitions
from assignors.problem import InvalidProblemError, Problem
from assignors.rack_traffic import Bounds, reduce_rack_traffic
from assignors.registry import assign, check_options
from assignors.verifier import violations
from fairlead.common.words import plural
from fairlead.domain.analysis.forecast import Forecast
from fairlead.domain.analysis.per_member import of_owner, sum_by_owner
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.sample_series import Float64, Int32, Mask
from fairlead.domain.analysis.thresholds import MOSTLY, NAMED, NEGLIGIBLE
from fairlead.domain.analysis.weighing import CandidateInputs, behind, gain

#: The assignor that uses the forecast; the others use their own rules.
FLAGSHIP: Final = "sticky-lag-aware"
#: A plan is good enough if no member exceeds the mean utilisation by more than this share of the
#: unused capacity: the next small change of arrivals then needs no new plan.
ROOM: Final = 0.25
#: Share by which a member may be more utilised than necessary before partitions move.
BAND: Final = 0.05
#: Maximum number of points of the curve of time lag by moves.
POINTS: Final = 50


@dataclass(frozen=True, eq=False)
class Candidate:
    """The assignment of one assignor.

    Parameters
    ----------
    assignment, forecast
        None if the assignor failed.
    moved
        Number of partitions that move away from a present owner.
    error
        Why the assignor failed; None if it did not.
    frontier
        Number of moves and time lag at the horizon in seconds, for fewer moves than planned; only
        from assignors that move step by step.
    rack_gb_per_day
        Gigabytes a day from other racks; None: unknown, or racks do not count.
    """

    assignor: str
    assignment: Assignment | None = None
    forecast: Forecast | None = None
    moved: int = 0
    error: str | None = None
    frontier: tuple[tuple[int, float], ...] = ()
    rack_gb_per_day: float | None = None


def candidates(
    inputs: CandidateInputs, names: Sequence[str], options: Mapping[str, Mapping[str, Any]]
) -> tuple[Candidate, ...]:
    """Run assignors.

    Raises
    ------
    InvalidProblemError
        An assignor or option is unknown.
    """
    for name in names:
        check_options(name, options.get(name, {}))
    return tuple(_candidate(inputs, name, options.get(name, {})) for name in names)


def _candidate(inputs: CandidateInputs, name: str, options: Mapping[str, Any]) -> Candidate:
    try:
        assignment = _run(inputs, name, options)
    except InvalidProblemError as error:
        return Candidate(name, error=str(error))
    except Exception as error:  # noqa: BLE001 - one assignor must not take the others with it
        return Candidate(name, error=f"The assignor failed: {error!r}")
    if broken := violations(inputs.problem, assignment):
        return Candidate(name, error=f"The assignment is invalid: {'; '.join(broken)}")
    after = assignment.owner
    return Candidate(
        assignor=name,
        assignment=assignment,
        forecast=inputs.outlook.forecast(after, inputs.rules.horizon_s),
        moved=moved_partitions(inputs.problem.owner, after),
        frontier=_frontier(inputs, assignment) if assignment.frontier else (),
        rack_gb_per_day=None if inputs.traffic is None else inputs.traffic.gb_per_day(after),
    )


def _run(inputs: CandidateInputs, name: str, options: Mapping[str, Any]) -> Assignment:
    options = _within_budget(inputs.rules, name, options)
    if name != FLAGSHIP:
        return assign(name, inputs.problem, **options)
    if inputs.racks_only:
        assignment = Assignment(
            inputs.problem,
            inputs.problem.owner,
            "no change: within the objective",
        )
    else:
        assignment = _relieved(inputs, options)
    return _with_less_rack_traffic(inputs, assignment, options)


def _relieved(inputs: CandidateInputs, options: Mapping[str, Any]) -> Assignment:
    """Plan each reader set that is behind or lacks an owner separately, the most behind first.

    Sets for which a plan is not worth its moves keep their owners, unless no plan is.
    """
    problem, peers = inputs.problem, inputs.peers
    sets = [] if problem.equal_subscriptions else _sets_to_plan(inputs)
    if not sets:
        return _relieved_set(inputs, options)
    plans, needless, left = list[Assignment](), list[Assignment](), options.get("max_moves")
    for number in sets:
        of_set = _of_set(inputs, number)
        plan = _relieved_set(of_set, {**options, "max_moves": left})
        changed = (plan.owner != problem.owner) & (peers.of_partition == number)
        plan = replace(
            plan,
            owner=np.where(changed, plan.owner, problem.owner),
            reasons={index: why for index, why in plan.reasons.items() if changed[index]},
        )
        if not _pays(of_set, plan.owner):
            needless.append(plan)
            continue
        plans.append(plan)
        left = None if left is None else left - moved_partitions(problem.owner, plan.owner)
    plans = plans or needless[:1]  # so that the reason says what it would save
    owner, reasons = problem.owner.copy(), dict[int, str]()
    for plan in plans:
        owner = np.where(plan.owner == problem.owner, owner, plan.owner)
        reasons |= plan.reasons
    outcomes = dict.fromkeys(plan.outcome or "" for plan in plans)
    outcome = "; ".join([*outcomes][:NAMED])
    return Assignment(problem, owner, outcome, reasons, plans[0].frontier)


def _relieved_set(inputs: CandidateInputs, options: Mapping[str, Any]) -> Assignment:
    work = _work(inputs)
    limits = {"horizon": inputs.horizon_s, "enough": _enough(inputs, work)}
    plan = assign(FLAGSHIP, work, **{**limits, **options})
    if (band := _band(work)) < BAND and _overfull(inputs, plan):
        closer = assign(FLAGSHIP, work, **{**limits, "band": band, **options})
        plan = plan if _overfull(inputs, closer) else closer
    harmless = _harmless_moves(inputs, plan)
    if harmless is not None:
        plan = assign(FLAGSHIP, work, **{**limits, **options, "max_moves": harmless})
    return replace(plan, problem=inputs.problem)


def _overfull(inputs: CandidateInputs, plan: Assignment) -> bool:
    return bool(inputs.outlook.utilisation(plan.owner).max(initial=0.0) > 1.0)


def _harmless_moves(inputs: CandidateInputs, plan: Assignment) -> int | None:
    """Return how many moves bring no other member of an overloaded group over the objective.

    None: all moves. Members without a measured capacity count with their largest possible one.
    """
    outlook = replace(inputs.outlook, capacities=inputs.at_most)
    if outlook.arrivals.sum() <= outlook.capacities.sum():
        return None

    def late(owner: Int32) -> Mask:
        return outlook.forecast_time_lag(owner, inputs.horizon_s) > inputs.rules.objective_s

    before = late(inputs.problem.owner)
    if not (late(plan.owner) & ~before).any():
        return None
    steps = _owners_after(inputs, plan, len(plan.reasons) + 1)
    return next(
        (moves - 1 for moves, owner in steps if moves and (late(owner) & ~before).any()), None
    )


def _pays(inputs: CandidateInputs, owner: Int32) -> bool:
    """Whether a plan gives an owner to partitions without one, or is worth its moves."""
    before, saved = inputs.problem.owner, gain(inputs, owner)
    price = moved_partitions(before, owner) * inputs.rules.move_downtime_s
    placed = ((before < 0) & (owner >= 0)).any()
    return bool(placed or (saved.avoided_s > price and not saved.slight))


def _sets_to_plan(inputs: CandidateInputs) -> list[int]:
    """Return the numbers of reader sets that are behind or lack an owner, most behind first."""
    problem, peers = inputs.problem, inputs.peers
    unowned = peers.of_partition[problem.assignable & (problem.owner < 0)]
    time_lag = inputs.outlook.forecast_time_lag(problem.owner, inputs.rules.horizon_s)
    return sorted(
        {*peers.reader_set[behind(inputs)].tolist(), *unowned.tolist()},
        key=lambda number: -time_lag[peers.reader_set == number].max(),
    )


def _of_set(inputs: CandidateInputs, number: int) -> CandidateInputs:
    """Return inputs in which other reader sets have no arrivals, backlog or capacity."""
    outlook, peers = inputs.outlook, inputs.peers
    partitions, members = peers.of_partition == number, peers.reader_set == number
    return replace(
        inputs,
        outlook=replace(
            outlook,
            arrivals=np.where(partitions, outlook.arrivals, 0.0),
            backlog=np.where(partitions, outlook.backlog, 0.0),
            time_lag_s=np.where(partitions, outlook.time_lag_s, 0.0),
            capacities=np.where(members, outlook.capacities, 0.0),
        ),
        at_most=np.where(members, inputs.at_most, 0.0),
    )


def _within_budget(rules: Rules, name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an assignor's options, with no more moves than the rules allow."""
    asked = options.get("max_moves")
    if rules.max_moves is None or (name != FLAGSHIP and asked is None):
        return options
    if isinstance(asked, int) and asked < rules.max_moves:
        return options
    return {**options, "max_moves": rules.max_moves}


def _with_less_rack_traffic(
    inputs: CandidateInputs, assignment: Assignment, options: Mapping[str, Any]
) -> Assignment:
    """Return an assignment with less rack traffic and no larger time lag.

    In a group over its objective, there are no further moves.
    """
    traffic, before = inputs.traffic, inputs.problem.owner
    if traffic is None:
        return assignment
    work = _work(inputs)
    if not work.members or work.arrival_rates is None:
        return assignment
    moves = moved_partitions(before, assignment.owner)
    load: Float64 = work.weights + work.arrival_rates * inputs.horizon_s
    bounds = Bounds(
        load=_enough(inputs, work),
        moves=options.get("max_moves") if inputs.racks_only else moves,
        least=NEGLIGIBLE * float(traffic.per_s.mean()),
        fixed=inputs.held,
        counts=options.get("max_count_skew") is not None,
    )
    owner = reduce_rack_traffic(work, assignment.owner, load, traffic.per_s, bounds)
    time_lag_s = max(inputs.rules.objective_s, _late(inputs, assignment.owner))
    if (owner == assignment.owner).all() or _late(inputs, owner) > time_lag_s:
        return assignment
    reasons = {
        index: why for index, why in assignment.reasons.items() if owner[index] != before[index]
    }
    for index in np.flatnonzero((owner != assignment.owner) & (owner != before)).tolist():
        reasons[index] = f"is then read in rack {inputs.problem.racks[owner[index]]}"
    outcome = assignment.outcome
    if inputs.racks_only:
        outcome = f"{plural(moved_partitions(before, owner), 'move')}: for racks"
    return replace(assignment, owner=owner, outcome=outcome, reasons=reasons)


def _late(inputs: CandidateInputs, owner: Int32) -> float:
    time_lag_s = inputs.outlook.forecast_time_lag(owner, inputs.rules.horizon_s)
    return float(time_lag_s.max(initial=0.0))


def _frontier(inputs: CandidateInputs, assignment: Assignment) -> tuple[tuple[int, float], ...]:
    """Return `Candidate.frontier`."""
    steps = _owners_after(inputs, assignment, POINTS)
    return tuple((moves, _late(inputs, owner)) for moves, owner in steps)


def _owners_after(
    inputs: CandidateInputs, assignment: Assignment, points: int
) -> Iterator[tuple[int, Int32]]:
    """Yield numbers of moves, from none to all, and the owners after these moves.

    Partitions without an owner are placed first.
    """
    before, after = inputs.problem.owner, assignment.owner
    moves = np.array([index for index in assignment.reasons if before[index] >= 0], np.int64)
    number = np.full(before.size, moves.size)
    number[moves] = np.arange(moves.size)
    placed = np.where(before < 0, after, before)
    counts = np.unique(np.linspace(0, moves.size, points).round().astype(np.int64))
    for count in counts.tolist():
        yield count, np.where(number < count, after, placed)


def _work(inputs: CandidateInputs) -> Problem:
    """Return the problem with backlogs as weights, arrival rates and capacities.

    A held partition has no weight, so that it stays, and its arrivals reduce its owner's capacity.
    The same applies to a partition that is too large for every member, if its owner is about the
    fastest. Loads are capped at one member's capacity, so that the others still improve.
    """
    problem, outlook, owner = inputs.problem, inputs.outlook, inputs.problem.owner
    fastest = float(outlook.capacities.max(initial=0.0))
    capacities: Float64 = np.maximum(outlook.capacities, max(1e-6, 1e-6 * fastest))  # divisors
    most = inputs.rules.target_utilisation * float(capacities.max(initial=0.0))
    at_most = np.maximum(capacities, inputs.at_most)
    fills = outlook.arrivals > float(at_most.max(initial=0.0))
    fastest = capacities >= MOSTLY * capacities.max(initial=0.0)
    stays = fills & of_owner(fastest, owner, none=False)
    held = (inputs.held | stays) & (owner >= 0)
    reserved = sum_by_owner(np.where(held, outlook.arrivals, 0.0), owner, capacities.size)
    arrivals = np.where(held, 0.0, np.minimum(outlook.arrivals, most))
    backlog = np.where(held, 0.0, outlook.backlog)
    room = np.maximum(most - arrivals, 0.0) * inputs.horizon_s
    return replace(
        problem,
        weights=np.minimum(backlog, room).round().astype(np.int64),
        arrival_rates=arrivals,
        capacities=np.maximum(capacities - reserved, 0.01 * capacities),
    )


def _enough(inputs: CandidateInputs, work: Problem) -> float:
    """Return the load of the most loaded member below which moves stop, in seconds of work."""
    assert work.arrival_rates is not None  # noqa: S101 - `_work` sets them
    horizon_s = inputs.horizon_s
    total = float(work.weights.sum() + work.arrival_rates.sum() * horizon_s)
    even = total / (float(work.capacities.sum()) * horizon_s)
    roomy = even + ROOM * max(1.0 - even, 0.0)
    if even < 1.0 and horizon_s > inputs.rules.horizon_s:
        return roomy * horizon_s  # members have large backlogs, which are temporary
    return min(roomy, inputs.rules.target_utilisation) * horizon_s


def _band(work: Problem) -> float:
    """Return `BAND`, or less in a nearly full group: half of the unused capacity over arrivals."""
    assert work.arrival_rates is not None  # noqa: S101 - `_work` sets them
    arrivals, capacity = float(work.arrival_rates.sum()), float(work.capacities.sum())
    if not capacity / (1.0 + BAND) < arrivals < capacity:
        return BAND
    return 0.5 * (capacity / arrivals - 1.0)  # the other half is for the backlog
