"""Last step of the analysis: whether a group gets a plan, and which.

Belongs here: reasons for no plan, and comparing savings of candidates with their cost. Does not:
the earlier steps (`steps`), nor the rules of assignment (`assignors`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from assignors.problem import Problem
from fairlead.common.words import length
from fairlead.domain.analysis.candidates import FLAGSHIP, Candidate, candidates
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import Costs
from fairlead.domain.analysis.diagnosis import Diagnosis, a_few
from fairlead.domain.analysis.forecast import Forecast, Outlook
from fairlead.domain.analysis.per_member import sum_by_owner
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import RackTraffic, cost_per_day
from fairlead.domain.analysis.reported_work import MeasuredWork
from fairlead.domain.analysis.sample_series import Int32
from fairlead.domain.analysis.sizing import Size
from fairlead.domain.analysis.steps import Analysis, analyse
from fairlead.domain.analysis.thresholds import NEGLIGIBLE, SAMPLES_NEEDED, SEVERAL, WEEK_S
from fairlead.domain.analysis.weighing import BETTER, behind, gain

#: Commits of the median member that show the effect of a plan: the first may be of earlier records.
COMMITS_NEEDED: Final = 2

#: Back-off after this number of recent plans: seconds, doubled with each further plan, so that no
#: mistake of the analysis moves partitions all day.
AT_ONCE: Final = 20
FIRST_BACKOFF_S: Final = 3600.0
#: Seconds. Plans that took effect earlier are not recent.
LATELY_S: Final = 2 * 86_400.0

Outcome = Literal["plan", "no change"]
Choose = Literal["first", "best"]


@dataclass(frozen=True, eq=False)
class PlanDecision:
    """Whether a group gets a plan, with the analysis behind it.

    Parameters
    ----------
    outcome, reason
        Whether the group gets a plan, and the reason, in words.
    diagnosis
        The problem of the group.
    kept
        Forecast with the present owners.
    candidates
        Assignments of the assignors with their forecasts; empty if none was computed.
    chosen
        The candidate that is the plan; None without a plan.
    capacities
        Known capacities by member, for the next analysis.
    costs
        Costs of records by partition.
    outlook
        Expected loads and capacities.
    size
        Number of consumers now, and the number needed.
    traffic
        Traffic between racks; None: impossible, or ignored.
    work
        Reported work of the last hour; None: nothing was reported.
    """

    outcome: Outcome
    reason: str
    diagnosis: Diagnosis
    kept: Forecast
    candidates: tuple[Candidate, ...]
    chosen: Candidate | None
    capacities: Mapping[str, Capacity]
    costs: Costs
    outlook: Outlook
    size: Size
    traffic: RackTraffic | None = None
    work: MeasuredWork | None = None

    @property
    def owner(self) -> Int32 | None:
        """Planned owners, int32 of shape (P,); None without a plan."""
        assignment = None if self.chosen is None else self.chosen.assignment
        return None if assignment is None else assignment.owner

    @property
    def planned(self) -> Forecast | None:
        """Forecast of the plan; None without a plan."""
        return None if self.chosen is None else self.chosen.forecast

    @property
    def moved(self) -> int:
        """Owned partitions that the plan moves."""
        return 0 if self.chosen is None else self.chosen.moved

    def reported(self, problem: Problem) -> dict[str, Any]:
        """Return the reported work as JSON, by `MeasuredWork.row`; empty if there is none."""
        return {} if self.work is None else self.work.row(problem)

    @property
    def for_racks(self) -> bool:
        """Whether the plan only reduces traffic between racks, in a healthy group."""
        return self.traffic is not None and self.diagnosis.name == "healthy" and self.moved > 0


def decide(
    question: Question,
    *,
    assignors: Sequence[str] = (FLAGSHIP,),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    choose: Choose = "first",
    compare: bool = False,
) -> PlanDecision:
    """Analyse a group, and decide whether it gets a plan.

    Parameters
    ----------
    question
        The group.
    assignors
        Assignors whose candidates may become the plan, in order of preference.
    options
        Assignor name to its options.
    choose
        `first`: the first assignor's candidate, or the next one's if the first assignor fails.
        `best`: the least time lag at the horizon, then the least rack traffic, the lowest
        utilisation and the fewest moves.
    compare
        Whether candidates are computed even if no plan is needed.

    Raises
    ------
    assignors.problem.InvalidProblemError
        An assignor or option is unknown.

    Notes
    -----
    Deterministic. `_hold` returns a reason for no plan: nothing can be decided now (there are no
    members, too little is known, or the effect of the last change cannot be seen yet), the group
    stays within its objective, or it catches up as fast as any assignment could.

    ==================  =============  ============  ==========================  ==================
    reason for no plan  lacks owners   racks only    candidates                  a plan, if
    ==================  =============  ============  ==========================  ==================
    no                                               all                         worth it
    yes                 yes                          those without moves, or     it gives an owner
                                                     all if there are none       to each partition
    yes                 no             yes           those within the objective  it saves enough
    yes                 no             no            none                        never
    ==================  =============  ============  ==========================  ==================

    The columns are `_hold`, `Analysis.places` and `_reduces_traffic`. A candidate is worth it
    (`_worth`) if it brings the forecast within the objective, or improves it by `BETTER`, and saves
    more time lag, summed over partitions, than the moves cost.

    Examples
    --------
    One sample of two members is too little for a plan, but a partition without an owner gets one.

    >>> from assignors.problem import Member
    >>> from fairlead.domain.analysis.sample_series import SampleSeries
    >>> def ask(owned_by_b):
    ...     owner = np.array([[0, 1 if owned_by_b else -1]], np.int32)
    ...     members = {
    ...         "a": Member(["t"], owned={"t": [0]}),
    ...         "b": Member(["t"], owned={"t": owned_by_b}),
    ...     }
    ...     none = np.zeros((1, 2), np.int64)
    ...     series = SampleSeries(np.zeros(1), none, none, none, ("a", "b"), owner)
    ...     return decide(Question(Problem.of({"t": 2}, members, {"t": [0, 0]}), series))
    >>> answer = ask([1])
    >>> answer.outcome, answer.reason[:35]
    ('no change', 'unknown: There is 1 sample of the g')
    >>> answer = ask([])
    >>> answer.outcome, answer.owner.tolist(), answer.moved
    ('plan', [0, 1], 0)
    """
    analysis = analyse(question)
    hold = _hold(analysis)
    offered: tuple[Candidate, ...] = ()
    if hold is not None and analysis.places:
        # Partitions without an owner get an owner; no other partition moves.
        placing = replace(analysis.inputs, rules=replace(question.rules, max_moves=0))
        offered = candidates(placing, assignors, options or {})
        if any(candidate.forecast is not None and not candidate.moved for candidate in offered):
            return _decision(analysis, offered, *_choice(analysis, offered, choose, limit=0))
    racks_only = hold is not None and not analysis.places and _reduces_traffic(analysis)
    if hold is None or compare or analysis.places or racks_only:
        inputs = replace(analysis.inputs, racks_only=racks_only)
        offered = candidates(inputs, assignors, options or {})
    if racks_only:
        chosen, why = _rack_plan(analysis, offered, choose)
        return _decision(analysis, offered, chosen, why if chosen else f"{hold}; {why}")
    free = hold is None or analysis.places
    chosen, reason = _choice(analysis, offered, choose) if free else (None, hold)
    return _decision(analysis, offered, chosen, reason or "")


def _decision(
    analysis: Analysis, offered: tuple[Candidate, ...], chosen: Candidate | None, reason: str
) -> PlanDecision:
    return PlanDecision(
        outcome="no change" if chosen is None else "plan",
        reason=reason,
        diagnosis=analysis.diagnosis,
        kept=analysis.kept,
        candidates=offered,
        chosen=chosen,
        capacities=analysis.estimates.known,
        costs=analysis.estimates.costs,
        outlook=analysis.outlook,
        size=analysis.size,
        traffic=analysis.inputs.traffic,
        work=analysis.observations.work,
    )


def _hold(analysis: Analysis) -> str | None:
    """Return why no candidate can become a plan; None if a candidate can."""
    diagnosis, blocked = analysis.diagnosis, _blocked(analysis)
    if blocked is not None:
        return blocked
    if not analysis.late.any() or not behind(analysis.inputs).any():
        return f"{diagnosis.name}: {diagnosis.evidence}"
    return None


def _blocked(analysis: Analysis) -> str | None:
    """Return why nothing can be decided now; None: a decision is possible."""
    problem, diagnosis = analysis.problem, analysis.diagnosis
    if not problem.members or not problem.assignable.any():
        return diagnosis.evidence
    if diagnosis.name == "unknown":
        return f"unknown: {diagnosis.evidence}"
    return _waits(analysis) or _settles(analysis)


def _waits(analysis: Analysis) -> str | None:
    """Return why the last plan's effect cannot be seen yet; None if it can."""
    changed_at, rules = analysis.question.changed_at, analysis.rules
    if changed_at is None:
        return None
    now = analysis.question.series.now
    if rules.cooldown_s is not None and now < changed_at + rules.cooldown_s:
        left = length(changed_at + rules.cooldown_s - now)
        return f"the last plan took effect {length(now - changed_at)} ago: cooldown for {left} more"
    plans = [at for at in analysis.question.changes if at > now - LATELY_S]
    back_off_ends_at = _back_off_ends_at(plans, changed_at)
    samples_since = int(
        (analysis.observations.recent.at > changed_at + rules.move_downtime_s).sum()
    )
    shows_at = changed_at + rules.move_downtime_s + _commits_s(analysis)
    shows = samples_since >= SAMPLES_NEEDED and now >= max(back_off_ends_at, shows_at)
    if shows or _changed_since(analysis, changed_at):
        return None
    if now < back_off_ends_at:
        return (
            f"{len(plans)} plans took effect within {length(now - plans[0])}: back-off for "
            f"{length(back_off_ends_at - now)} more"
        )
    if samples_since >= SAMPLES_NEEDED:
        return (
            f"the last plan took effect {length(now - changed_at)} ago: members commit rarely, and "
            f"samples will show its effect in {length(shows_at - now)}"
        )
    return (
        f"the last plan took effect {length(max(now - changed_at, 0.0))} ago: {samples_since} of "
        f"the {SAMPLES_NEEDED} samples that show its effect have been taken"
    )


def _back_off_ends_at(plans: Sequence[float], changed_at: float) -> float:
    """Return the end of the back-off, which becomes shorter as plans stop being recent.

    Parameters
    ----------
    plans
        Times of recent plans, ascending.
    changed_at
        Time of the last plan.
    """
    return min(
        max(changed_at + doubled_s(FIRST_BACKOFF_S, len(plans) - gone - AT_ONCE + 1), at)
        for gone, at in enumerate([changed_at, *(plan + LATELY_S for plan in plans)])
    )


def _commits_s(analysis: Analysis) -> float:
    """Return the seconds in which commits of the median member show the effect of a plan.

    `COMMITS_NEEDED` intervals, or enough to measure its capacity. Not of the member with the
    longest intervals: it would delay plans for all others.
    """
    commits = analysis.estimates.commits
    known = np.isfinite(commits.interval_s)
    if not known.any():
        return 0.0
    interval_s, held_s = np.median(
        [commits.interval_s[known], commits.held_back_s[known]], axis=1
    ).tolist()
    return COMMITS_NEEDED * float(max(interval_s, SEVERAL * held_s))


def doubled_s(first_s: float, times: int) -> float:
    """Return a back-off in seconds, doubled each time, at most `WEEK_S`; 0 for no times.

    Examples
    --------
    >>> [doubled_s(3600.0, times) / 3600 for times in (0, 1, 2, 3, 20)]
    [0.0, 1.0, 2.0, 4.0, 168.0]
    """
    return min(first_s * 2.0 ** (times - 1), WEEK_S) if times > 0 else 0.0


def _changed_since(analysis: Analysis, changed_at: float) -> bool:
    """Whether members are behind because arrivals have changed since the last plan.

    If so, the group neither waits for the plan's effect nor backs off.
    """
    problem, rules = analysis.problem, analysis.rules
    late = analysis.outlook.forecast_time_lag(problem.owner, rules.horizon_s) > rules.objective_s
    theirs = (problem.owner >= 0) & late[problem.owner]
    rates, series = analysis.estimates.rates, analysis.observations.recent
    changed = theirs & (rates.seconds <= series.now - changed_at)
    changed &= rates.seconds < series.now - series.at[0]
    raised = sum_by_owner(np.where(changed, rates.per_s, 0.0), problem.owner, late.size)
    return bool((raised > NEGLIGIBLE * analysis.outlook.capacities)[late].any())


def _settles(analysis: Analysis) -> str | None:
    """Describe members that came or went too recently to see the effect; None: no member did.

    A member came if it owns partitions now and did not before, and went in the opposite case,
    unless a plan did that. Members with few arrivals that are not behind do not count: in a large
    group members come and go all the time.
    """
    series, changed_at = analysis.observations.recent, analysis.question.changed_at
    members = len(analysis.problem.members)
    for back in range(2, min(SAMPLES_NEEDED, len(series)) + 1):
        before = series.owner[-back]
        if (before < 0).all():
            continue  # the coordinator returned none
        changed = _owners(series.owner[-1]) ^ _owners(before)
        if changed_at is not None and changed_at >= series.at[-back]:
            changed = {member for member in changed if member >= members}  # absent now
        if changed and _matters(analysis, before, sorted(changed)):
            names = [series.members[member] for member in sorted(changed)]
            ago = length(series.now - series.at[-back])
            return (
                f"{a_few(names)} joined or left within the last {ago}: {SAMPLES_NEEDED} samples "
                "are needed to show the effect"
            )
    return None


def _matters(analysis: Analysis, before: Int32, changed: Sequence[int]) -> bool:
    """Whether members that came or went have, or had, many arrivals or a backlog."""
    owner, rules = analysis.problem.owner, analysis.rules
    touched = np.isin(before, changed) | np.isin(owner, changed)
    arrivals = analysis.estimates.rates.per_s
    if arrivals[touched].sum() > NEGLIGIBLE * arrivals.sum() or not arrivals.any():
        return True
    late = analysis.outlook.forecast_time_lag(owner, rules.horizon_s) > rules.objective_s
    return bool(late[owner[touched & (owner >= 0)]].any())


def _owners(owner: Int32) -> set[int]:
    return set(owner[owner >= 0].tolist())


def _choice(
    analysis: Analysis, offered: Sequence[Candidate], choose: Choose, limit: int | None = None
) -> tuple[Candidate | None, str]:
    """Choose a candidate, and compare it with the present owners."""
    usable = [candidate for candidate in offered if candidate.forecast is not None]
    if not usable:
        errors = "; ".join(f"{candidate.assignor}: {candidate.error}" for candidate in offered)
        return None, f"every assignor failed: {errors or 'none was asked'}"
    limit = analysis.rules.max_moves if limit is None else limit
    usable = [candidate for candidate in usable if limit is None or candidate.moved <= limit]
    if not usable:
        return (
            None,
            f"every candidate moves more than the {limit:,} partitions that a plan may move",
        )
    best = min(usable, key=partial(_burden, analysis)) if choose == "best" else usable[0]
    worth, reason = _worth(analysis, best)
    return (best if worth else None), f"{best.assignor}: {reason}"


def _burden(analysis: Analysis, candidate: Candidate) -> tuple[float, float, float, int]:
    """Return the sort key of candidates, the smaller the better.

    If racks count, all time lags within the objective are equal.
    """
    forecast, assignment = candidate.forecast, candidate.assignment
    assert forecast is not None  # noqa: S101 - candidates without one have been passed over
    assert assignment is not None  # noqa: S101 - as above
    time_lag_s, far = forecast.time_lag_s, 0.0
    if analysis.inputs.traffic is not None:
        time_lag_s = max(time_lag_s, analysis.rules.objective_s)
        far = round(analysis.inputs.traffic.share(assignment.owner), 2)
    return time_lag_s, far, round(forecast.utilisation, 2), candidate.moved


def _rack_plan(
    analysis: Analysis, offered: Sequence[Candidate], choose: Choose
) -> tuple[Candidate | None, str]:
    """Return a plan that reduces a healthy group's traffic between racks, with its saving."""
    usable = [candidate for candidate in offered if candidate.assignment is not None]
    allowed = usable[:1] if choose == "first" else usable
    plan = next((candidate for candidate in allowed if candidate.assignor == FLAGSHIP), None)
    traffic, rules = analysis.inputs.traffic, analysis.rules
    if plan is None or plan.assignment is None or traffic is None:
        return None, f"only {FLAGSHIP} makes plans only for racks"
    before, after = analysis.problem.owner, plan.assignment.owner
    what = traffic.describe(before, after, rules.price_per_gb)
    if not plan.moved:
        return None, f"no assignment reduces the traffic without a larger time lag; {what}"
    if rules.max_moves is not None and plan.moved > rules.max_moves:
        return (
            None,
            f"it moves {plan.moved:,} partitions, a plan may move {rules.max_moves:,}; {what}",
        )
    if not _saves_enough(analysis, traffic, traffic.between(before) - traffic.between(after)):
        return None, f"not worth {plan.moved:,} moves; {what}"
    return plan, f"{plan.assignor}: {what}"


def _reduces_traffic(analysis: Analysis) -> bool:
    """Whether a healthy group may get a plan that only reduces its traffic between racks."""
    traffic = analysis.inputs.traffic
    if traffic is None or analysis.diagnosis.name != "healthy" or analysis.orphans:
        return False
    if analysis.kept.time_lag_s > analysis.rules.objective_s or _blocked(analysis) is not None:
        return False
    return _saves_enough(analysis, traffic, traffic.between(analysis.problem.owner))


def _saves_enough(analysis: Analysis, traffic: RackTraffic, per_s: float) -> bool:
    """Whether a reduction of rack traffic is worth a plan: by its price, else by its share."""
    rules, total = analysis.rules, float(traffic.per_s.sum())
    saved = cost_per_day(traffic.daily_gb(per_s), rules.price_per_gb)
    if saved is not None:
        return saved > 0 and saved >= rules.least_saving_per_day
    return total > 0 and per_s >= BETTER * total


def _worth(analysis: Analysis, candidate: Candidate) -> tuple[bool, str]:
    """Return whether a candidate is worth its moves, and why."""
    rules, kept = analysis.rules, analysis.kept
    problem, planned = analysis.problem, candidate.forecast
    if planned is None or candidate.assignment is None:
        return False, candidate.error or "failed"
    owner = candidate.assignment.owner
    what = (
        f"time lag in {length(rules.horizon_s)}: {length(kept.time_lag_s)} without a plan, "
        f"{length(planned.time_lag_s)} with it; most utilised member {kept.utilisation:.0%}, then "
        f"{planned.utilisation:.0%}"
    )
    if analysis.inputs.traffic is not None:
        what += f"; {analysis.inputs.traffic.describe(problem.owner, owner, rules.price_per_gb)}"
    if analysis.orphans:
        placed = "1 partition" if analysis.orphans == 1 else f"{analysis.orphans:,} partitions"
        return True, f"{placed} without an owner get one; {what}"
    if not candidate.moved:
        known = "" if analysis.estimates.speeds.measured.all() else ", as far as is known"
        return False, f"no assignment is better{known} ({analysis.diagnosis.name}); {what}"
    saved = gain(analysis.inputs, owner)
    if planned.time_lag_s > (1.0 - BETTER) * kept.time_lag_s:
        # The plan helps other members than the one that is furthest behind.
        then, now = length(saved.time_lag_s), length(saved.planned_s)
        what += f"; time lag of the {saved.members} members that it changes: {then}, then {now}"
    if saved.slight:
        return False, f"too small an improvement ({analysis.diagnosis.name}); {what}"
    stopped = int((owner >= 0).sum()) if analysis.question.eager else candidate.moved
    price = stopped * rules.move_downtime_s
    if saved.avoided_s <= price:
        return False, (
            f"not worth it: summed over partitions, the plan avoids {length(saved.avoided_s)} of "
            f"time lag, and its moves cost {length(price)} of downtime; {what}"
        )
    return True, what
