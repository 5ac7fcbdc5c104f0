"""Candidates: assignments that assignors return, with their forecasts and avoided time lags.

Belongs here: the input of assignors, limits for `sticky-lag-aware`, and the figures of candidates.
Belongs elsewhere: choosing a candidate (`decide`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from assignors.assignment import Assignment
from assignors.metrics import moved_partitions
from assignors.problem import InvalidProblemError, Problem
from assignors.rack_traffic import Bounds, reduce_rack_traffic
from assignors.registry import assign, check_options, option_defaults
from assignors.verifier import violations
from fairlead.common.words import plural
from fairlead.domain.analysis.diagnosis import Basis
from fairlead.domain.analysis.forecast import Forecast
from fairlead.domain.analysis.per_member import sum_by_owner
from fairlead.domain.analysis.sample_series import Float64, Int32, Mask
from fairlead.domain.analysis.steps import Analysis
from fairlead.domain.analysis.thresholds import BETTER, CLEARLY, NEGLIGIBLE

#: The only assignor that uses the forecast. Other assignors use their own rules.
FLAGSHIP: Final = "sticky-lag-aware"
#: A plan is good enough if no member's utilisation exceeds the mean by more than this share of the
#: unused capacity. Small changes of arrivals then need no new plan.
ROOM: Final = 0.25
#: Maximum length of the planning horizon (see `planning_horizon_s`), as a multiple of the policy's
#: horizon.
FURTHEST: Final = 20.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """The assignment that an assignor returned, and its figures.

    `moved` is the number of partitions that move away from a present owner. `rack_gb_per_day` is
    None if rack traffic is unknown, or if the policy ignores it.
    """

    assignor: str
    assignment: Assignment
    forecast: Forecast
    moved: int
    rack_gb_per_day: float | None


class Failure(NamedTuple):
    """An assignor that returned no valid assignment, and the reason."""

    assignor: str
    error: str


def candidates(
    analysis: Analysis,
    names: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    max_moves: int | None = None,
    *,
    racks_only: bool = False,
) -> tuple[Candidate | Failure, ...]:
    """Run assignors, and return the candidate or the failure of each.

    Parameters
    ----------
    max_moves
        Maximum number of owned partitions to move, for assignors with such an option.
    racks_only
        Whether the only purpose of moves is to reduce rack traffic, because the group is within its
        objective.

    Raises
    ------
    InvalidProblemError
        An assignor or option is unknown.
    """
    for name in names:
        check_options(name, options.get(name, {}))

    def candidate(name: str) -> Candidate | Failure:
        try:
            limited = _limited(name, options.get(name, {}), max_moves)
            assignment = _run(analysis, name, limited, racks_only=racks_only)
        except InvalidProblemError as error:
            return Failure(name, str(error))
        except Exception as error:  # noqa: BLE001 - the other assignors run nevertheless
            return Failure(name, f"The assignor failed: {error!r}")
        if broken := violations(analysis.problem, assignment):
            return Failure(name, f"The assignment is invalid: {'; '.join(broken)}")
        after, traffic = assignment.owner, analysis.traffic
        return Candidate(
            assignor=name,
            assignment=assignment,
            forecast=analysis.outlook.forecast(after, analysis.rules.horizon_s),
            moved=moved_partitions(analysis.owner, after),
            rack_gb_per_day=None if traffic is None else traffic.gb_per_day(after),
        )

    return tuple(map(candidate, names))


def _limited(name: str, options: Mapping[str, Any], max_moves: int | None) -> Mapping[str, Any]:
    """Return options with `max_moves` added or lowered, if the assignor has such an option."""
    limits = [most for most in (options.get("max_moves"), max_moves) if most is not None]
    if not limits or "max_moves" not in option_defaults(name):
        return options
    return {**options, "max_moves": min(limits)}


def _run(
    analysis: Analysis, name: str, options: Mapping[str, Any], *, racks_only: bool
) -> Assignment:
    problem = analysis.problem
    if name != FLAGSHIP:
        return assign(name, problem, **options)
    if racks_only:
        plan = Assignment(problem, problem.owner, "no change: within the objective")
        most = options.get("max_moves")
    else:
        plan = _relieved(analysis, options)
        most = moved_partitions(problem.owner, plan.owner)
    if analysis.traffic is None:
        return plan
    work, load, enough = _work(analysis)
    bounds = Bounds(
        load=enough,
        moves=most,
        least=NEGLIGIBLE * float(analysis.traffic.per_s.mean()),
        fixed=analysis.estimates.held,
        counts=options.get("max_count_skew") is not None,
    )
    owner = reduce_rack_traffic(work, plan.owner, load, analysis.traffic.per_s, bounds)
    if _late(analysis, owner) > max(analysis.rules.objective_s, _late(analysis, plan.owner)):
        return plan
    return _in_racks(plan, owner, racks_only=racks_only)


def _relieved(analysis: Analysis, options: Mapping[str, Any]) -> Assignment:
    """Return a plan that moves partitions only in reader sets in which the moves are worth it.

    A reader set is a set of members that share topics. If no set is worth its moves, return the
    plan for the first set. The group then gets no plan, and the decision can state how much time
    lag this plan would have avoided.
    """
    problem, left = analysis.problem, options.get("max_moves")
    parts = reader_set_parts(analysis)
    plan = Assignment(problem, problem.owner)
    needless: Assignment | None = None
    for partitions, part in parts:
        of_set = _relieved_set(part, {**options, "max_moves": left})
        changed = partitions & (of_set.owner != problem.owner)
        owner = np.where(changed, of_set.owner, problem.owner)
        kept = {index: why for index, why in of_set.reasons.items() if changed[index]}
        if len(parts) > 1 and not _pays(part, owner):
            needless = needless or replace(of_set, owner=owner, reasons=kept)
            continue
        plan = replace(
            of_set,
            owner=np.where(changed, owner, plan.owner),
            reasons={**plan.reasons, **kept},
            outcome="; ".join(dict.fromkeys(filter(None, (plan.outcome, of_set.outcome)))),
        )
        left = None if left is None else left - moved_partitions(problem.owner, owner)
    return plan if needless is None or plan.reasons else needless


def _relieved_set(part: Analysis, options: Mapping[str, Any]) -> Assignment:
    work, _, enough = _work(part)
    options = {"horizon": planning_horizon_s(part), "enough": enough, **options}
    plan = assign(FLAGSHIP, work, **options)
    if (band := _narrow_band(work)) is not None and _overfull(part, plan):
        narrow = assign(FLAGSHIP, work, **{"band": band, **options})
        plan = plan if _overfull(part, narrow) else narrow
    harmless = _harmless_moves(part, plan)
    if harmless is not None:
        plan = assign(FLAGSHIP, work, **{**options, "max_moves": harmless})
    return replace(plan, problem=part.problem)


def _overfull(part: Analysis, plan: Assignment) -> bool:
    """Return whether a plan gives a member more arrivals than it can process."""
    return bool(part.outlook.utilisation(plan.owner).max(initial=0.0) > 1.0)


def _narrow_band(work: Problem) -> float | None:
    """Return a lower value of the option `band`, for a group with little unused capacity.

    The assignor stops when the highest load is at most the share `band` above its lower bound. The
    result is half of the unused capacity, relative to arrivals; the other half is for the backlog.
    None if the assignor's default leaves enough room, or if the group is overloaded.
    """
    assert work.arrival_rates is not None  # noqa: S101 - `_work` sets them
    default: float = option_defaults(FLAGSHIP)["band"]
    unused = float(work.capacities.sum() / max(work.arrival_rates.sum(), 1e-9)) - 1.0
    return 0.5 * unused if 0.0 < unused < default else None


def _pays(part: Analysis, owner: Int32) -> bool:
    """Whether new owners avoid enough time lag, or a partition without an owner gets an owner."""
    avoided_s, slight = gain(part, owner)
    price = moved_partitions(part.owner, owner) * part.rules.move_downtime_s
    placed = ((part.owner < 0) & (owner >= 0)).any()
    return bool(placed or (avoided_s > price and not slight))


def reader_set_parts(analysis: Analysis) -> list[tuple[Mask, Analysis]]:
    """Return the reader sets that need moves or owners, by descending time lag.

    A reader set is a set of members that share topics. It is returned if one of its members will
    exceed the objective, or if one of its partitions has no owner. For each set, return its
    partitions, bool of shape (P,), and an analysis in which all other sets have no arrivals,
    backlog or capacity.
    """
    problem, outlook, peers = analysis.problem, analysis.outlook, analysis.estimates.peers
    unowned = peers.of_partition[problem.assignable & (problem.owner < 0)]
    time_lag = outlook.forecast_time_lag(problem.owner, analysis.rules.horizon_s)
    numbers = {*peers.reader_set[analysis.late].tolist(), *unowned.tolist()}
    if not numbers or problem.equal_subscriptions:
        return [(problem.assignable, analysis)]
    parts = []
    for number in sorted(numbers, key=lambda its: -time_lag[peers.reader_set == its].max()):
        partitions, members = peers.of_partition == number, peers.reader_set == number
        of_set = replace(
            outlook,
            arrivals=np.where(partitions, outlook.arrivals, 0.0),
            backlog=np.where(partitions, outlook.backlog, 0.0),
            time_lag_s=np.where(partitions, outlook.time_lag_s, 0.0),
            capacities=np.where(members, outlook.capacities, 0.0),
        )
        parts.append((partitions, replace(analysis, outlook=of_set)))
    return parts


def _harmless_moves(analysis: Analysis, plan: Assignment) -> int | None:
    """Return how many moves of a plan come before the first move that harms another member.

    A move harms a member if the member then exceeds the objective. None: no move harms a member, or
    the group is not overloaded. If a member's capacity was not measured, its largest possible
    capacity is used.
    """
    before, horizon_s = analysis.owner, planning_horizon_s(analysis)
    at_most = np.where(analysis.outlook.capacities > 0, analysis.estimates.speeds.at_most, 0.0)
    outlook = replace(analysis.outlook, capacities=at_most)
    if outlook.arrivals.sum() <= at_most.sum():
        return None

    def late(owner: Int32) -> Mask:
        return outlook.forecast_time_lag(owner, horizon_s) > analysis.rules.objective_s

    in_time, owner = ~late(before), np.where(before < 0, plan.owner, before)
    for moves, index in enumerate(index for index in plan.reasons if before[index] >= 0):
        owner[index] = plan.owner[index]
        if (late(owner) & in_time).any():
            return moves
    return None


def _in_racks(plan: Assignment, owner: Int32, *, racks_only: bool) -> Assignment:
    """Return `plan` with new owners that reduce rack traffic, and with a reason for each move."""
    before, racks = plan.problem.owner, plan.problem.racks
    reasons = {index: why for index, why in plan.reasons.items() if owner[index] != before[index]}
    for index in np.flatnonzero((owner != plan.owner) & (owner != before)).tolist():
        reasons[index] = (
            f"reduces cross-rack traffic: its new owner is in rack {racks[owner[index]]}"
        )
    outcome = plan.outcome
    if racks_only and (owner != before).any():
        outcome = f"{plural(moved_partitions(before, owner), 'move')} to reduce cross-rack traffic"
    return replace(plan, owner=owner, outcome=outcome, reasons=reasons)


def _late(analysis: Analysis, owner: Int32) -> float:
    time_lag_s = analysis.outlook.forecast_time_lag(owner, analysis.rules.horizon_s)
    return float(time_lag_s.max(initial=0.0))


def _work(analysis: Analysis) -> tuple[Problem, Float64, float]:
    """Return the input of the assignor `sticky-lag-aware`.

    The three values are

    - an assignment problem in cost-weighted records, in which backlogs are the weights
    - the work of each partition until the planning horizon (backlog and arrivals), of shape (P,)
    - `enough`: a plan is good enough if each member can do its work in this number of seconds

    Partitions in `Estimates.held` have no work, because they must not move. Their arrivals are
    subtracted from the capacity of their owners. The work of a partition is limited to what one
    member can do, because a larger partition would prevent improvements elsewhere.
    """
    outlook, owner, horizon_s = analysis.outlook, analysis.owner, planning_horizon_s(analysis)
    fastest = float(outlook.capacities.max(initial=0.0))
    # Capacities are used as divisors below, so none may be 0.
    capacities: Float64 = np.maximum(outlook.capacities, 1e-6 * max(fastest, 1.0))
    most = analysis.rules.target_utilisation * float(capacities.max(initial=0.0))
    held = analysis.estimates.held & (owner >= 0)
    reserved = sum_by_owner(np.where(held, outlook.arrivals, 0.0), owner, capacities.size)
    arrivals = np.where(held, 0.0, np.minimum(outlook.arrivals, most))
    backlog = np.where(held, 0.0, np.minimum(outlook.backlog, (most - arrivals) * horizon_s))
    work = replace(
        analysis.problem,
        weights=backlog.round().astype(np.int64),
        arrival_rates=arrivals,
        capacities=np.maximum(capacities - reserved, 0.01 * capacities),
    )
    load: Float64 = work.weights + arrivals * horizon_s
    even = float(load.sum() / work.capacities.sum()) / horizon_s
    roomy = even + ROOM * max(1.0 - even, 0.0)
    return work, load, min(roomy, analysis.rules.target_utilisation) * horizon_s


def planning_horizon_s(basis: Basis) -> float:
    """Return the planning horizon: the number of seconds for which assignors balance the work.

    A member's work is its backlog plus its arrivals until the planning horizon, which is long
    enough to read the whole backlog of the group. If the horizon were shorter, the work of some
    members would consist almost only of backlog, and they would be idle after reading it.
    """
    outlook, problem, horizon_s = basis.outlook, basis.problem, basis.rules.horizon_s
    spare = outlook.capacities[problem.readers].sum() - outlook.arrivals[problem.assignable].sum()
    if spare <= 0:
        return horizon_s
    drained_s = CLEARLY * float(outlook.backlog[problem.assignable].sum() / spare)
    return min(max(drained_s, horizon_s), FURTHEST * horizon_s)


def gain(basis: Basis, owner: Int32) -> tuple[float, bool]:
    """Return how much time lag new owners avoid, in seconds, and whether it is too little.

    The time lags at the planning horizon are compared, summed over all partitions of the members
    whose partitions change. The gain is too little if one of these members still exceeds the
    objective, although less than `BETTER` (a share) of their time lag is avoided.
    """
    outlook, rules, now = basis.outlook, basis.rules, basis.owner
    changed = owner != now
    members, span_s = np.union1d(now[changed], owner[changed]), planning_horizon_s(basis)
    before_s, then_s = (
        float(outlook.total_time_lag(owners, span_s)[members].sum()) for owners in (now, owner)
    )
    time_lag_s = outlook.forecast_time_lag(owner, rules.horizon_s)[members]
    slight = before_s - then_s < BETTER * before_s
    return before_s - then_s, slight and bool((time_lag_s > rules.objective_s).any())


def catches_up(basis: Basis) -> bool:
    """Return whether the present owners read the backlog about as soon as the best owners would."""
    span_s, rules = planning_horizon_s(basis), basis.rules
    close_s = max(rules.objective_s, NEGLIGIBLE * (span_s - rules.horizon_s))
    return bool((basis.outlook.forecast_time_lag(basis.owner, span_s) <= close_s).all())
