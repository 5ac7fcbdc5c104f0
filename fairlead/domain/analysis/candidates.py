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
from assignors.racks import far_partitions
from assignors.registry import assign, check_options
from assignors.verifier import violations
from fairlead.domain.analysis.forecast import Forecast, Outlook
from fairlead.domain.analysis.per_member import of_owner, sum_by_owner
from fairlead.domain.analysis.rules import Rules
from fairlead.domain.analysis.sample_series import Float64, Int32, Int64, Mask
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
#: Maximum number of owners in one array, to bound memory.
_CELLS: Final = 100_000


@dataclass(frozen=True, eq=False)
class Candidate:
    """The assignment of one assignor.

    Parameters
    ----------
    assignor
        Its name.
    assignment
        None if the assignor failed.
    forecast
        Forecast of the assignment; None if it failed.
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
    results = [_assigned(inputs, name, options.get(name, {})) for name in names]
    assignments = [assignment for assignment in results if isinstance(assignment, Assignment)]
    owners = np.array([assignment.owner for assignment in assignments], np.int32)
    owners = owners.reshape(len(assignments), inputs.problem.partition_total)
    forecasts = iter(inputs.outlook.forecasts(owners, inputs.rules.horizon_s))
    return tuple(
        with_figures(inputs, name, assignment, next(forecasts))
        if isinstance(assignment, Assignment)
        else Candidate(name, error=assignment)
        for name, assignment in zip(names, results, strict=True)
    )


def _assigned(inputs: CandidateInputs, name: str, options: Mapping[str, Any]) -> Assignment | str:
    """Return an assignor's assignment, or its error."""
    try:
        assignment = _run(inputs, name, options)
    except InvalidProblemError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - one assignor must not take the others with it
        return f"The assignor failed: {error!r}"
    if broken := violations(inputs.problem, assignment):
        return f"The assignment is invalid: {'; '.join(broken)}"
    return assignment


def with_figures(
    inputs: CandidateInputs, name: str, assignment: Assignment, forecast: Forecast
) -> Candidate:
    """Return an assignment as a candidate with its figures."""
    before, after = inputs.problem.owner, assignment.owner
    return Candidate(
        assignor=name,
        assignment=assignment,
        forecast=forecast,
        moved=moved_partitions(before, after),
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
    return _with_less_rack_traffic(inputs, assignment, _work(inputs), options)


def _relieved(inputs: CandidateInputs, options: Mapping[str, Any]) -> Assignment:
    """Plan each reader set separately, the most behind first.

    Sets for which a plan is not worth its moves keep their owners.
    """
    problem, left = inputs.problem, options.get("max_moves")
    worth, needless = list[Assignment](), list[Assignment]()
    for of_set, partitions in _reader_sets(inputs):
        plan = _relieved_set(of_set, {**options, "max_moves": left})
        plan = replace(
            plan,
            problem=problem,
            owner=np.where(partitions, plan.owner, problem.owner),
            reasons={index: why for index, why in plan.reasons.items() if partitions[index]},
        )
        if not _pays(of_set, plan.owner):
            needless.append(plan)
            continue
        worth.append(plan)
        left = None if left is None else left - moved_partitions(problem.owner, plan.owner)
    owner, reasons = problem.owner.copy(), dict[int, str]()
    included = worth or needless[:1]
    for plan in included:
        owner = np.where(plan.owner == problem.owner, owner, plan.owner)
        reasons |= plan.reasons
    outcome = "; ".join(dict.fromkeys(plan.outcome or "" for plan in included[:NAMED]))
    if len(included) > NAMED:
        outcome += f"; and {len(included) - NAMED:,} more sets of readers"
    return Assignment(problem, owner, outcome, reasons, included[0].frontier)


def _pays(inputs: CandidateInputs, owner: Int32) -> bool:
    """Whether a plan gives an owner to partitions without one, or is worth its moves."""
    before, rules = inputs.problem.owner, inputs.rules
    if ((before < 0) & (owner >= 0)).any():
        return True
    saved = gain(inputs, owner)
    return (
        not saved.slight
        and saved.avoided_s > moved_partitions(before, owner) * rules.move_downtime_s
    )


def _reader_sets(inputs: CandidateInputs) -> list[tuple[CandidateInputs, Mask]]:
    """Return the inputs of each reader set to plan, and its partitions, bool of shape (P,).

    Only sets that are behind or have a partition without an owner; the whole group if no set does.
    """
    problem, peers = inputs.problem, inputs.peers
    numbers = np.union1d(
        peers.reader_set[behind(inputs)],
        peers.of_partition[problem.assignable & (problem.owner < 0)],
    )
    if peers.one_subscription or not numbers.size:
        return [(inputs, np.ones(problem.partition_total, dtype=bool))]
    time_lag = inputs.outlook.forecast_time_lag(problem.owner, inputs.rules.horizon_s)
    latest = [time_lag[peers.reader_set == number].max() for number in numbers]
    return [
        (_of_set(inputs, number), peers.of_partition == number)
        for number in numbers[np.argsort(latest, kind="stable")[::-1]].tolist()
    ]


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


def _relieved_set(inputs: CandidateInputs, options: Mapping[str, Any]) -> Assignment:
    work = _work(inputs)
    limits = {"horizon": inputs.horizon_s, "enough": _enough(inputs, work)}
    plan = assign(FLAGSHIP, work, **{**limits, **options})
    if (band := _band(work)) is not None and _overfull(inputs, plan):
        closer = assign(FLAGSHIP, work, **{**limits, "band": band, **options})
        plan = plan if _overfull(inputs, closer) else closer
    harmless = _harmless_moves(inputs, plan)
    if harmless is not None:
        plan = assign(FLAGSHIP, work, **{**limits, **options, "max_moves": harmless})
    return plan


def _within_budget(rules: Rules, name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an assignor's options, with no more moves than the rules allow."""
    asked = options.get("max_moves")
    if rules.max_moves is None or (name != FLAGSHIP and asked is None):
        return options
    if isinstance(asked, int) and asked < rules.max_moves:
        return options
    return {**options, "max_moves": rules.max_moves}


def _with_less_rack_traffic(
    inputs: CandidateInputs, assignment: Assignment, work: Problem, options: Mapping[str, Any]
) -> Assignment:
    """Return an assignment with less traffic between racks and no larger time lag.

    In a group over its objective, the number of moves stays the same: further moves would delay it.
    """
    traffic, before = inputs.traffic, inputs.problem.owner
    if traffic is None or not work.members:
        return assignment
    load: Float64 = work.weights.astype(np.float64)
    if work.arrival_rates is not None:
        load += work.arrival_rates * inputs.horizon_s
    bounds = Bounds(
        load=_enough(inputs, work),
        moves=options.get("max_moves")
        if inputs.racks_only
        else moved_partitions(before, assignment.owner),
        least=NEGLIGIBLE * float(traffic.per_s.mean()),
        fixed=inputs.held,
        counts=options.get("max_count_skew") is not None,
    )
    owner = reduce_rack_traffic(work, assignment.owner, load, traffic.per_s, bounds)
    time_lag_s = max(inputs.rules.objective_s, _late(inputs, assignment.owner))
    if (owner == assignment.owner).all() or _late(inputs, owner) > time_lag_s:
        return assignment
    moves = moved_partitions(before, owner)
    for_racks = f"{moves:,} move{'' if moves == 1 else 's'}: for racks"
    return replace(
        assignment,
        owner=owner,
        outcome=for_racks if inputs.racks_only else assignment.outcome,
        reasons=_reasons(inputs.problem, assignment, owner),
    )


def _late(inputs: CandidateInputs, owner: Int32) -> float:
    time_lag_s = inputs.outlook.forecast_time_lag(owner, inputs.rules.horizon_s)
    return float(time_lag_s.max(initial=0.0))


def _reasons(problem: Problem, assignment: Assignment, owner: Int32) -> dict[int, str]:
    """Return why partitions move: earlier reasons that still apply, then racks."""
    moves = (problem.owner >= 0) & (owner != problem.owner)
    reasons = {index: why for index, why in assignment.reasons.items() if moves[index]}
    far_before, far = (far_partitions(problem, owners) for owners in (assignment.owner, owner))
    for index in np.flatnonzero(moves & (owner != assignment.owner)).tolist():
        rack = problem.racks[owner[index]]
        near = far_before[index] and not far[index]
        reasons[index] = (
            f"is then read in rack {rack}"
            if near
            else "makes room for a move that saves rack traffic"
        )
    return reasons


def _harmless_moves(inputs: CandidateInputs, assignment: Assignment) -> int | None:
    """Return how many moves bring no other member of an overloaded group over the objective.

    None: all moves do so, or the group is not overloaded. Members that were not measured count with
    their largest possible capacity.
    """
    horizon_s, objective_s = inputs.horizon_s, inputs.rules.objective_s
    outlook = replace(inputs.outlook, capacities=inputs.at_most)
    if outlook.arrivals.sum() <= outlook.capacities.sum():
        return None
    before = inputs.problem.owner
    late = outlook.forecast_time_lag(before, horizon_s) > objective_s

    def spoils(owner: Int32) -> bool:
        after = outlook.forecast_time_lag(owner, horizon_s) > objective_s
        return bool((after & ~late).any())

    if not spoils(assignment.owner):
        return None
    moves = _moves(inputs, assignment)
    counts = np.arange(1, moves.size + 1)
    after = _time_lag_after(inputs, outlook, assignment, counts, horizon_s)
    spoilt = ((time_lag > objective_s) & ~late for time_lag in after)
    return next((count for count, members in enumerate(spoilt) if members.any()), moves.size)


def _moves(inputs: CandidateInputs, assignment: Assignment) -> Int64:
    """Return the owned partitions that an assignment moves, in its order."""
    moved = np.fromiter(assignment.reasons, np.int64, len(assignment.reasons))
    return moved[inputs.problem.owner[moved] >= 0]


def _time_lag_after(
    inputs: CandidateInputs,
    outlook: Outlook,
    assignment: Assignment,
    counts: Int64,
    horizon_s: float,
) -> Iterator[Float64]:
    """Yield each member's time lag after each of several numbers of moves, float64 of shape (M,).

    Partitions without an owner are placed first.
    """
    moves, before = _moves(inputs, assignment), inputs.problem.owner
    number = np.full(before.size, moves.size)
    number[moves] = np.arange(moves.size)
    placed = np.where(before < 0, assignment.owner, before)
    at_once = max(_CELLS // max(before.size, 1), 1)
    for first in range(0, counts.size, at_once):
        done = number < counts[first : first + at_once, None]
        yield from outlook.forecast_time_lags(np.where(done, assignment.owner, placed), horizon_s)


def _frontier(inputs: CandidateInputs, assignment: Assignment) -> tuple[tuple[int, float], ...]:
    """Return `Candidate.frontier`."""
    moves = _moves(inputs, assignment)
    counts = np.unique(np.linspace(0, moves.size, POINTS).round().astype(np.int64))
    after = _time_lag_after(inputs, inputs.outlook, assignment, counts, inputs.rules.horizon_s)
    return tuple(
        (count, float(time_lag.max(initial=0.0)))
        for count, time_lag in zip(counts.tolist(), after, strict=True)
    )


def _work(inputs: CandidateInputs) -> Problem:
    """Return the problem with backlogs as weights, arrival rates and capacities.

    A held partition has no weight, so that it stays, and its arrivals reduce its owner's capacity.
    The same applies to a partition that is too large for every member, if its owner is about the
    fastest: all other partitions should leave that owner. Loads are capped at one member's
    capacity: otherwise, other partitions would not be improved.
    """
    problem, outlook, owner = inputs.problem, inputs.outlook, inputs.problem.owner
    capacities: Float64 = np.maximum(outlook.capacities, _least(outlook.capacities))
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


def _least(capacities: Float64) -> float:
    """Return the smallest capacity that is used as a divisor."""
    return max(1e-6, 1e-6 * float(capacities.max(initial=0.0)))


def _enough(inputs: CandidateInputs, work: Problem) -> float:
    """Return the load of the most loaded member at which a plan ends, in seconds of work.

    Between an even load and the target utilisation: a small change of load must not require another
    plan, and unnecessary moves cost time.
    """
    horizon_s = inputs.horizon_s
    rates = work.arrival_rates if work.arrival_rates is not None else np.zeros(0)
    total = float(work.weights.sum() + rates.sum() * horizon_s)
    even = total / (float(work.capacities.sum()) * horizon_s)
    roomy = even + ROOM * max(1.0 - even, 0.0)
    if even < 1.0 and horizon_s > inputs.rules.horizon_s:
        # Members have large backlogs, which are temporary.
        return roomy * horizon_s
    return min(roomy, inputs.rules.target_utilisation) * horizon_s


def _overfull(inputs: CandidateInputs, assignment: Assignment) -> bool:
    return bool(inputs.outlook.utilisation(assignment.owner).max(initial=0.0) > 1.0)


def _band(work: Problem) -> float | None:
    """Return the share by which a member may exceed the mean utilisation without falling behind.

    Half of the unused capacity over the arrivals. None: this is more than `BAND`, or the group is
    overloaded.
    """
    assert work.arrival_rates is not None  # noqa: S101 - `_work` sets them
    arrivals, capacity = float(work.arrival_rates.sum()), float(work.capacities.sum())
    if not capacity / (1.0 + BAND) < arrivals < capacity:
        return None
    return 0.5 * (capacity / arrivals - 1.0)  # the other half is for the backlog
