"""What each assignor would do with a group, on the same forecast.

Belongs here: what assignors are told of the forecast, how far the flagship goes, and each
candidate's figures. Does not: choosing between candidates (`decision`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import InvalidProblemError, Problem
from assignors.rack_traffic import Bounds, far_partitions, reduce_rack_traffic
from assignors.registry import assign, check_options
from assignors.verifier import violations
from fairlead.domain.judgement.forecast import Forecast, Outlook
from fairlead.domain.judgement.looks import Float64, Int32, Int64, Mask
from fairlead.domain.judgement.peers import Peers
from fairlead.domain.judgement.racks import RackTraffic
from fairlead.domain.judgement.rules import Rules

#: The assignor that plans by the forecast; the others follow their own rule.
FLAGSHIP: Final = "sticky-lag-aware"
#: How much of the room between what is used in all and everything a plan may use of a member.
ROOM: Final = 0.25
#: The flagship leaves members that are only so much fuller than need be.
BAND: Final = 0.05
#: Where a backlog takes longer than the horizon to be read, the horizon is so much of that time.
DRAINED: Final = 1.25
#: Further than so many horizons nobody looks.
FURTHEST: Final = 20.0
#: A plan that cannot bring members within their objective must make them less late by this share.
BETTER: Final = 0.1
#: While a backlog of hours is read, no plan is made for being through so much of that time earlier.
CLOSE: Final = 0.1
#: A partition that carries less than this share of what is usual is not moved for its rack.
WORTHWHILE: Final = 0.1
#: At so many numbers of moves is told what they buy.
POINTS: Final = 50
#: Who does so much of what the fastest member does is about the fastest.
_ABOUT: Final = 0.9
#: Of so many sets of readers is told how far they are relieved.
_TOLD: Final = 3
#: Owners after several numbers of moves are looked at side by side, so many at once.
_CELLS: Final = 100_000


@dataclass(frozen=True, eq=False)
class CandidateInputs:
    """What candidates are computed from: P partitions, M members.

    Parameters
    ----------
    problem
        As in `decision.Question`.
    outlook
        The forecast's figures.
    held
        Partitions that must stay where they are, bool of shape (P,): stuck ones, which whoever
        takes them reads again, and those of members that commit nothing.
    rules
        Of the policy.
    peers
        Which members share topics.
    at_most
        What members could turn out to do, records a second, float64 of shape (M,), as `Speeds`
        has it; None: what the outlook says they can.
    traffic
        Between racks; None: there can be none, or it does not count.
    calm
        Whether nothing is to be moved but for racks: the group is within its objective.
    """

    problem: Problem
    outlook: Outlook
    held: Mask
    rules: Rules
    peers: Peers
    at_most: Float64 | None = None
    traffic: RackTraffic | None = None
    calm: bool = False


@dataclass(frozen=True, eq=False)
class Candidate:
    """What one assignor would do.

    Parameters
    ----------
    assignor
        Its name.
    assignment
        None where it failed.
    forecast
        Of the assignment; None where it failed.
    moved
        Partitions taken from an owner that is present.
    error
        Why it failed; None where it did not.
    frontier
        What fewer moves would have bought: moves, and lateness at the horizon in seconds; of
        assignors that move step by step, and say so by a frontier of their own.
    rack_gb_per_day
        Gigabytes a day that come from other racks; None: not known, or it does not count.
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
    found = [_assigned(inputs, name, options.get(name, {})) for name in names]
    made = [assignment for assignment in found if isinstance(assignment, Assignment)]
    owners = np.array([assignment.owner for assignment in made], np.int32)
    owners = owners.reshape(len(made), inputs.problem.partition_total)
    forecasts = iter(inputs.outlook.told_of_each(owners, inputs.rules.horizon_s))
    return tuple(
        with_figures(inputs, name, assignment, next(forecasts))
        if isinstance(assignment, Assignment)
        else Candidate(name, error=assignment)
        for name, assignment in zip(names, found, strict=True)
    )


def _assigned(inputs: CandidateInputs, name: str, options: Mapping[str, Any]) -> Assignment | str:
    """Return what an assignor would do, or why it failed."""
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
    """Return an assignor's assignment as a candidate, with its forecast and what is told beside."""
    before, after = inputs.problem.owner, assignment.owner
    return Candidate(
        assignor=name,
        assignment=assignment,
        forecast=forecast,
        moved=_moved(before, after),
        frontier=_frontier(inputs, assignment) if assignment.frontier else (),
        rack_gb_per_day=None if inputs.traffic is None else inputs.traffic.gb_per_day(after),
    )


def _moved(before: Int32, after: Int32) -> int:
    """Return how many partitions go from one owner to another."""
    return int(((before >= 0) & (after >= 0) & (before != after)).sum())


def _run(inputs: CandidateInputs, name: str, options: Mapping[str, Any]) -> Assignment:
    options = _within_budget(inputs.rules, name, options)
    if name != FLAGSHIP:
        return assign(name, inputs.problem, **options)
    if inputs.calm:
        found = Assignment(inputs.problem, inputs.problem.owner, "no change: nobody is late")
    else:
        found = _relieved(inputs, options)
    horizon_s = weighing_horizon(inputs)
    return _brought_near(inputs, found, _work(inputs, horizon_s), horizon_s, options)


def _relieved(inputs: CandidateInputs, options: Mapping[str, Any]) -> Assignment:
    """Plan each set of members that share topics by itself, the latest first.

    What one of them has too much of is no measure for the others. Where it is not worth its moves
    in some sets, these stay as they are.
    """
    problem, left = inputs.problem, options.get("max_moves")
    worth, needless = list[Assignment](), list[Assignment]()
    for part, mine in _parts(inputs):
        found = _relieved_part(part, {**options, "max_moves": left})
        found = replace(
            found,
            problem=problem,
            owner=np.where(mine, found.owner, problem.owner),
            reasons={index: why for index, why in found.reasons.items() if mine[index]},
        )
        if not _pays(part, found.owner):
            needless.append(found)
            continue
        worth.append(found)
        left = None if left is None else left - _moved(problem.owner, found.owner)
    owner, reasons = problem.owner.copy(), dict[int, str]()
    told = worth or needless[:1]
    for found in told:
        owner = np.where(found.owner == problem.owner, owner, found.owner)
        reasons |= found.reasons
    outcome = "; ".join(dict.fromkeys(found.outcome or "" for found in told[:_TOLD]))
    if len(told) > _TOLD:
        outcome += f"; and {len(told) - _TOLD:,} more sets of readers"
    return Assignment(problem, owner, outcome, reasons, told[0].frontier)


def _pays(inputs: CandidateInputs, owner: Int32) -> bool:
    """Whether a plan gives partitions an owner that have none, or is worth its moves."""
    before, rules = inputs.problem.owner, inputs.rules
    if ((before < 0) & (owner >= 0)).any():
        return True
    found = gain(inputs, owner)
    return not found.slight and found.avoided_s > _moved(before, owner) * rules.pause_s


def _parts(inputs: CandidateInputs) -> list[tuple[CandidateInputs, Mask]]:
    """Return the sets of members that share topics, and which partitions are theirs.

    Those that are behind, or with a partition that nobody owns; everything where none is so. The
    others have no arrivals, no backlog and no capacity.
    """
    problem, peers = inputs.problem, inputs.peers
    set_of = peers.topics[problem.topic_of]
    numbers = np.union1d(
        peers.linked[behind(inputs)], set_of[problem.assignable & (problem.owner < 0)]
    )
    if peers.linked is peers.alike or not numbers.size:
        return [(inputs, np.ones(problem.partition_total, dtype=bool))]
    lateness = inputs.outlook.lateness(problem.owner, inputs.rules.horizon_s)
    latest = [lateness[peers.linked == number].max() for number in numbers]
    return [
        (_part(inputs, set_of == number, peers.linked == number), set_of == number)
        for number in numbers[np.argsort(latest, kind="stable")[::-1]].tolist()
    ]


def _part(inputs: CandidateInputs, mine: Mask, members: Mask) -> CandidateInputs:
    outlook = inputs.outlook
    return replace(
        inputs,
        outlook=replace(
            outlook,
            arrivals=np.where(mine, outlook.arrivals, 0.0),
            backlog=np.where(mine, outlook.backlog, 0.0),
            late_s=np.where(mine, outlook.late_s, 0.0),
            capacities=np.where(members, outlook.capacities, 0.0),
        ),
        at_most=None if inputs.at_most is None else np.where(members, inputs.at_most, 0.0),
    )


def _relieved_part(inputs: CandidateInputs, options: Mapping[str, Any]) -> Assignment:
    horizon_s = weighing_horizon(inputs)
    work = _work(inputs, horizon_s)
    limits = {"horizon": horizon_s, "enough": _enough(inputs, work, horizon_s)}
    found = assign(FLAGSHIP, work, **{**limits, **options})
    if (band := _band(work)) is not None and _overfull(inputs, found):
        closer = assign(FLAGSHIP, work, **{**limits, "band": band, **options})
        found = found if _overfull(inputs, closer) else closer
    spared = _sparing(inputs, found, horizon_s)
    if spared is not None:
        found = assign(FLAGSHIP, work, **{**limits, **options, "max_moves": spared})
    return found


def _within_budget(rules: Rules, name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an assignor's options, with no more moves than the rules allow."""
    asked = options.get("max_moves")
    if rules.max_moves is None or (name != FLAGSHIP and asked is None):
        return options
    if isinstance(asked, int) and asked < rules.max_moves:
        return options
    return {**options, "max_moves": rules.max_moves}


def _brought_near(
    inputs: CandidateInputs,
    found: Assignment,
    work: Problem,
    horizon_s: float,
    options: Mapping[str, Any],
) -> Assignment:
    """Return an assignment with less traffic between racks, and nobody later for it.

    A group within its objective pays for that with moves; a late one with none beyond those that
    there are: they would hold up what it needs.
    """
    traffic, before = inputs.traffic, inputs.problem.owner
    if traffic is None or not work.members:
        return found
    load: Float64 = work.weights.astype(np.float64)
    if work.arrival_rates is not None:
        load += work.arrival_rates * horizon_s
    bounds = Bounds(
        load=_enough(inputs, work, horizon_s),
        moves=options.get("max_moves") if inputs.calm else _moved(before, found.owner),
        least=WORTHWHILE * float(traffic.per_s.mean()),
        fixed=inputs.held,
        counts=options.get("max_count_skew") is not None,
    )
    owner = reduce_rack_traffic(work, found.owner, load, traffic.per_s, bounds)
    late_s = max(inputs.rules.objective_s, _late(inputs, found.owner))
    if (owner == found.owner).all() or _late(inputs, owner) > late_s:
        return found
    moves = _moved(before, owner)
    outcome = f"{moves:,} move{'' if moves == 1 else 's'}: for racks" if inputs.calm else None
    return replace(
        found,
        owner=owner,
        outcome=outcome or found.outcome,
        reasons=_reasons(inputs.problem, found, owner),
    )


def _late(inputs: CandidateInputs, owner: Int32) -> float:
    return inputs.outlook.forecast(owner, inputs.rules.horizon_s).late_s


def _reasons(problem: Problem, found: Assignment, owner: Int32) -> dict[int, str]:
    """Return why partitions move: those of before that still do, then those for racks."""
    moves = (problem.owner >= 0) & (owner != problem.owner)
    reasons = {index: why for index, why in found.reasons.items() if moves[index]}
    far_before, far = (far_partitions(problem, owners) for owners in (found.owner, owner))
    for index in np.flatnonzero(moves & (owner != found.owner)).tolist():
        rack = problem.racks[owner[index]]
        near = far_before[index] and not far[index]
        reasons[index] = f"is read in {rack}" if near else "makes room for one that is read there"
    return reasons


def _sparing(inputs: CandidateInputs, found: Assignment, horizon_s: float) -> int | None:
    """Return how many moves make nobody late who is not, where there is too much for all.

    None: as many as there are. Whoever has room is filled up, and no more: to have everybody late
    is no better than to have some. A guess about members that were never at their limit forbids
    nothing: only more than what they could turn out to do makes them late.
    """
    outlook, objective_s = inputs.outlook, inputs.rules.objective_s
    if inputs.at_most is not None:
        outlook = replace(outlook, capacities=inputs.at_most)
    if outlook.arrivals.sum() <= inputs.rules.headroom * outlook.capacities.sum():
        return None
    before = inputs.problem.owner
    late = outlook.lateness(before, horizon_s) > objective_s

    def spoils(owner: Int32) -> bool:
        after = outlook.lateness(owner, horizon_s) > objective_s
        return bool((after & ~late).any())

    if not spoils(found.owner):
        return None
    moves = _moves(inputs, found)
    counts = np.arange(1, moves.size + 1)
    after = _lateness_after(inputs, outlook, found, counts, horizon_s)
    spoilt = ((lateness > objective_s) & ~late for lateness in after)
    return next((count for count, members in enumerate(spoilt) if members.any()), moves.size)


def _moves(inputs: CandidateInputs, found: Assignment) -> Int64:
    """Return the owned partitions that an assignment moves, in the order in which it does."""
    moved = np.fromiter(found.reasons, np.int64, len(found.reasons))
    return moved[inputs.problem.owner[moved] >= 0]


def _lateness_after(
    inputs: CandidateInputs,
    outlook: Outlook,
    found: Assignment,
    counts: Int64,
    horizon_s: float,
) -> Iterator[Float64]:
    """Yield each member's lateness after so many of the moves, and with everything placed."""
    moves, before = _moves(inputs, found), inputs.problem.owner
    number = np.full(before.size, moves.size)
    number[moves] = np.arange(moves.size)
    placed = np.where(before < 0, found.owner, before)
    at_once = max(_CELLS // max(before.size, 1), 1)
    for first in range(0, counts.size, at_once):
        done = number < counts[first : first + at_once, None]
        yield from outlook.lateness_of_each(np.where(done, found.owner, placed), horizon_s)


def _frontier(inputs: CandidateInputs, found: Assignment) -> tuple[tuple[int, float], ...]:
    """Return how late the group is forecast after how many of the moves."""
    moves = _moves(inputs, found)
    counts = np.unique(np.linspace(0, moves.size, POINTS).round().astype(np.int64))
    after = _lateness_after(inputs, inputs.outlook, found, counts, inputs.rules.horizon_s)
    return tuple(
        (count, float(lateness.max(initial=0.0)))
        for count, lateness in zip(counts.tolist(), after, strict=True)
    )


class Gain(NamedTuple):
    """What a plan comes to for the members that it changes: seconds.

    Parameters
    ----------
    members
        How many these are.
    late_s, planned_s
        How late the latest of them is at the horizon, as it is and as planned.
    avoided_s
        By how much less late they are once what waits can have been read, summed over partitions.
    slight
        Whether that is hardly anything, and they are not within the objective for it.
    """

    members: int
    late_s: float
    planned_s: float
    avoided_s: float
    slight: bool


def gain(inputs: CandidateInputs, owner: Int32) -> Gain:
    """Hold a plan that takes no partition from nobody against what is."""
    outlook, rules, now = inputs.outlook, inputs.rules, inputs.problem.owner
    changed = owner != now
    members = np.union1d(now[changed], owner[changed])
    spans = _weighing_horizons(inputs)
    before_s, then_s = (
        float(outlook.lateness_in_all(owners, spans)[members].sum()) for owners in (now, owner)
    )
    late_s, planned_s = (
        float(outlook.lateness(owners, rules.horizon_s)[members].max(initial=0.0))
        for owners in (now, owner)
    )
    avoided_s = before_s - then_s
    slight = planned_s > rules.objective_s and avoided_s < BETTER * before_s
    return Gain(members.size, late_s, planned_s, avoided_s, slight)


def behind(inputs: CandidateInputs) -> Mask:
    """Return who shares topics with somebody late, where not all are about to catch up, bool (M,).

    They catch up if all that waits is read about as soon as any assignment could have it read.
    """
    outlook, rules, linked = inputs.outlook, inputs.rules, inputs.peers.linked
    owner, spans = inputs.problem.owner, _weighing_horizons(inputs)
    close_s = np.maximum(rules.objective_s, CLOSE * (spans - rules.horizon_s))
    late = outlook.lateness(owner, rules.horizon_s) > rules.objective_s
    slow = outlook.lateness(owner, spans) > close_s
    found: Mask = np.isin(linked, np.intersect1d(linked[late], linked[slow]))
    return found


def weighing_horizon(inputs: CandidateInputs) -> float:
    """Return how far ahead work is weighed, in seconds.

    Far enough that all that waits can have been read by then: else members would be filled with
    backlog alone, and fall behind again once that is gone.
    """
    return float(_weighing_horizons(inputs).max(initial=inputs.rules.horizon_s))


def _weighing_horizons(inputs: CandidateInputs) -> Float64:
    """Return the same for each member: what others have that share no topics does not count."""
    outlook, rules, peers = inputs.outlook, inputs.rules, inputs.peers
    set_of = peers.topics[inputs.problem.topic_of]
    mine, count = set_of >= 0, peers.linked.size
    waits, arrives = (
        np.bincount(set_of[mine], amounts[mine], count)
        for amounts in (outlook.backlog, outlook.arrivals)
    )
    spare = np.bincount(peers.linked, outlook.capacities, count) - arrives
    drained = np.where(spare > 0, waits / np.where(spare > 0, spare, 1.0), 0.0)
    longest = FURTHEST * rules.horizon_s
    horizons: Float64 = np.clip(DRAINED * drained, rules.horizon_s, longest)[peers.linked]
    return horizons


def _work(inputs: CandidateInputs, horizon_s: float) -> Problem:
    """Return the problem in the forecast's weights: backlog and arrivals, over capacities.

    A partition that is held has no weight, so that it stays; what arrives at it counts as taken
    from its owner's capacity. So does a partition that fills any member alone, whatever members
    turn out to do, where its owner is about the fastest: everything else is to leave that owner.
    Another that fills members as far as is known weighs just that much: else nothing would be done
    for the others.
    """
    problem, outlook, owner = inputs.problem, inputs.outlook, inputs.problem.owner
    capacities: Float64 = np.maximum(outlook.capacities, _least(outlook.capacities))
    most = inputs.rules.headroom * float(capacities.max(initial=0.0))
    at_most = capacities if inputs.at_most is None else np.maximum(capacities, inputs.at_most)
    fills = outlook.arrivals > float(at_most.max(initial=0.0))
    fastest = capacities >= _ABOUT * capacities.max(initial=0.0)
    stays = fills & np.append(fastest, False)[owner]  # nobody, -1, is the last
    held = (inputs.held | stays) & (owner >= 0)
    reserved = np.bincount(owner[held], outlook.arrivals[held], capacities.size)
    arrivals = np.where(held, 0.0, np.minimum(outlook.arrivals, most))
    backlog = np.where(held, 0.0, outlook.backlog)
    room = np.maximum(most - arrivals, 0.0) * horizon_s
    return replace(
        problem,
        weights=np.minimum(backlog, room).round().astype(np.int64),
        arrival_rates=arrivals,
        capacities=np.maximum(capacities - reserved, 0.01 * capacities),
    )


def _least(capacities: Float64) -> float:
    """Return the smallest capacity that can be divided by."""
    return max(1e-6, 1e-6 * float(capacities.max(initial=0.0)))


def _enough(inputs: CandidateInputs, work: Problem, horizon_s: float) -> float:
    """Return the load at which the heaviest member is relieved enough, in seconds of work.

    Between what would be even and what would be full: the next change of the load must not call for
    the next plan at once, and nothing is moved that need not be. Where there is too much for all,
    whoever has room is filled, and nobody is made late who is not.
    """
    rates = work.arrival_rates if work.arrival_rates is not None else np.zeros(0)
    total = float(work.weights.sum() + rates.sum() * horizon_s)
    even = total / (float(work.capacities.sum()) * horizon_s)
    roomy = even + ROOM * max(1.0 - even, 0.0)
    if even < 1.0 and horizon_s > inputs.rules.horizon_s:
        # What fills members is backlog, and will be gone.
        return roomy * horizon_s
    return min(roomy, inputs.rules.headroom) * horizon_s


def _overfull(inputs: CandidateInputs, found: Assignment) -> bool:
    return bool(inputs.outlook.utilisation(found.owner).max(initial=0.0) > 1.0)


def _band(work: Problem) -> float | None:
    """Return how much fuller than need be a member may stay and not fall behind, as a share.

    None: as much as it may stay anyway (`BAND`), or nothing, since there is too much for all.
    """
    assert work.arrival_rates is not None  # noqa: S101 - as `_work` has it
    arrivals, capacity = float(work.arrival_rates.sum()), float(work.capacities.sum())
    if not capacity / (1.0 + BAND) < arrivals < capacity:
        return None
    return 0.5 * (capacity / arrivals - 1.0)  # half of it for what waits
