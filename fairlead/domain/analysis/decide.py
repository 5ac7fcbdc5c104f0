"""Last step of the analysis: whether a group gets a plan, and which one.

Belongs here: reasons for no plan, and comparing the benefit of candidates with the cost of their
moves. Belongs elsewhere: the earlier steps (`steps`), and the rules of assignment (`assignors`).

No rule forbids moves back to an earlier owner. `_waits`, the spare room in `candidates`, and the
back-off after a regression (`fairlead.workflows.proposal`) limit such moves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from fairlead.common.words import length, plural
from fairlead.domain.analysis.arrivals import arrival_rates
from fairlead.domain.analysis.candidates import (
    FLAGSHIP,
    Candidate,
    Failure,
    candidates,
    catches_up,
    gain,
    reader_set_parts,
)
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import Costs
from fairlead.domain.analysis.diagnosis import Diagnosis
from fairlead.domain.analysis.forecast import Forecast, Outlook
from fairlead.domain.analysis.per_member import of_owner, sum_by_owner
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import RackTraffic, cost_per_day
from fairlead.domain.analysis.reported_work import MeasuredWork
from fairlead.domain.analysis.sample_series import Int32, median
from fairlead.domain.analysis.sizing import Size
from fairlead.domain.analysis.steps import Analysis, analyse
from fairlead.domain.analysis.thresholds import BETTER, NEGLIGIBLE, SAMPLES_NEEDED, SEVERAL, WEEK_S

#: Number of commits after which a plan's effect is visible: the first commit may only cover records
#: that were read before the plan.
COMMITS_NEEDED: Final = 2

#: If a group has had this many recent plans and withdrawals, its next plan has to wait, unless the
#: load has risen since the last one.
AT_ONCE: Final = 20
#: Seconds. How long the next plan has to wait after `AT_ONCE` recent plans. Each further plan
#: doubles the time, so that an error of the analysis cannot cause moves all day.
FIRST_BACKOFF_S: Final = 3600.0
#: Seconds. A plan is recent for this long after it was published or withdrawn.
LATELY_S: Final = 2 * 86_400.0

Outcome = Literal["plan", "no change"]
Choose = Literal["first", "best"]


@dataclass(frozen=True, eq=False)
class PlanDecision:
    """Whether a group gets a plan, and the analysis that led to this decision.

    Parameters
    ----------
    kept
        Forecast with the present owners.
    candidates
        The assignments of the policy's assignors, with their forecasts; empty if none was computed.
    chosen
        The candidate that is the plan; None without a plan.
    capacities
        Known capacities by member, to be remembered for the next analysis.
    costs
        Known costs by partition, likewise.
    traffic
        Traffic between racks; None: racks are unknown, or the policy ignores them.
    work
        Reported work of the last hour; None: nothing was reported.
    """

    outcome: Outcome
    reason: str
    diagnosis: Diagnosis
    kept: Forecast
    candidates: tuple[Candidate | Failure, ...]
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
        return None if self.chosen is None else self.chosen.assignment.owner

    @property
    def planned(self) -> Forecast | None:
        """Forecast of the plan; None without a plan."""
        return None if self.chosen is None else self.chosen.forecast

    @property
    def moved(self) -> int:
        """Number of partitions that the plan moves away from their present owner."""
        return 0 if self.chosen is None else self.chosen.moved

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
    assignors, options
        Assignors whose candidates may become the plan, in order of preference, and their options.
    choose
        `first`: the first candidate, in the order of the assignors, that moves no more than
        `max_moves`. `best`: the candidate with the least time lag at the horizon; among equals,
        with the least rack traffic, then the lowest utilisation, then the fewest moves.
    compare
        Whether to compute candidates even if no plan is needed.

    Raises
    ------
    assignors.problem.InvalidProblemError
        An assignor or option is unknown.

    Notes
    -----
    The first three columns are conditions: whether there is a reason for no plan (`_hold`), whether
    partitions lack owners (`Analysis.places`), and whether a plan may serve only to reduce rack
    traffic (`_reduces_traffic`). An empty cell means that the condition does not matter.

    ==================  =============  ============  ==========================  ==================
    reason for no plan  lacks owners   racks only    candidates                  becomes a plan if
    ==================  =============  ============  ==========================  ==================
    no                                               all                         worth it
    yes                 yes                          those without moves, or     it gives an owner
                                                     all if each has moves       to each partition
    yes                 no             yes           all                         it saves enough
    yes                 no             no            none; all if `compare`      never
    ==================  =============  ============  ==========================  ==================
    """
    analysis = analyse(question)
    hold, places, limit = _hold(analysis), analysis.places, question.rules.max_moves
    racks_only = hold is not None and not places and _reduces_traffic(analysis)
    run = partial(candidates, analysis, assignors, options or {}, racks_only=racks_only)
    offered: tuple[Candidate | Failure, ...] = ()
    if hold is not None and places:
        offered = run(0)
        if any(isinstance(each, Candidate) and not each.moved for each in offered):
            limit = 0
        else:
            offered = ()
    if not offered and (hold is None or places or racks_only or compare):
        offered = run(limit)
    chosen, reason = None, hold or ""
    if racks_only:
        chosen, why = _rack_plan(analysis, offered, choose)
        reason = why if chosen else f"{hold}; {why}"
    elif hold is None or places:
        chosen, reason = _choice(analysis, offered, choose, limit)
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
        traffic=analysis.traffic,
        work=analysis.observations.work,
    )


def _hold(analysis: Analysis) -> str | None:
    """Return the reason for no plan except one for partitions without an owner or rack traffic.

    None: a candidate can become a plan.

    If no member will exceed the objective, or all catch up without a plan about as soon as with the
    best one, the reason is the diagnosis with its evidence.
    """
    diagnosis, blocked = analysis.diagnosis, _blocked(analysis)
    if blocked is not None:
        return blocked
    if not analysis.late.any() or all(catches_up(part) for _, part in reader_set_parts(analysis)):
        return f"{diagnosis.name}: {diagnosis.evidence}"
    return None


def _blocked(analysis: Analysis) -> str | None:
    """Return the reason why nothing can be decided now; None if a decision is possible."""
    problem, diagnosis = analysis.problem, analysis.diagnosis
    if not problem.members or not problem.assignable.any():
        return diagnosis.evidence
    if diagnosis.name == "unknown":
        return f"unknown: {diagnosis.evidence}"
    return _waits(analysis)


def _waits(analysis: Analysis) -> str | None:
    """Return why the last plan rules out another plan for now; None if it does not."""
    changed_at, rules = analysis.question.changed_at, analysis.rules
    if changed_at is None:
        return None
    now = analysis.question.series.now
    if rules.cooldown_s is not None and now < changed_at + rules.cooldown_s:
        left = length(changed_at + rules.cooldown_s - now)
        return (
            f"the last plan took effect {length(now - changed_at)} ago: cooldown for another {left}"
        )
    plans = [at for at in analysis.question.changes if at > now - LATELY_S]
    back_off_s = min(FIRST_BACKOFF_S * 2.0 ** (len(plans) - AT_ONCE), WEEK_S)
    backs_off = len(plans) >= AT_ONCE and now < changed_at + back_off_s
    if backs_off and not _load_risen(analysis, changed_at):
        return (
            f"{len(plans)} plans took effect within {length(now - plans[0])}: back-off for "
            f"another {length(changed_at + back_off_s - now)}"
        )
    began_at = changed_at + rules.move_downtime_s
    samples = int((analysis.observations.recent.at > began_at).sum())
    ago = f"the last plan took effect {length(max(now - changed_at, 0.0))} ago"
    if samples < SAMPLES_NEEDED:
        return f"{ago}: too recently to measure its effect ({samples} of {SAMPLES_NEEDED} samples)"
    if now < (shows_at := began_at + _commits_s(analysis)):
        wait = length(shows_at - now)
        return f"{ago}: members commit rarely, so its effect will be known in {wait}"
    return None


def _load_risen(analysis: Analysis, changed_at: float) -> bool:
    """Return whether members are behind because arrivals have risen since the last plan.

    Then the previous plans were not mistakes, so the back-off does not apply.
    """
    series, owner = analysis.observations.recent, analysis.owner
    since = series.last(series.now - changed_at, 1)
    rates, span_s = arrival_rates(since), since.now - float(since.at[0])
    mean = (since.end[-1] - since.end[0]) / max(span_s, 1e-9)
    # If a partition was unreadable in some samples, it is unknown whether its arrivals have risen.
    rose = since.in_one_log[0] & (rates.seconds < span_s) & (rates.per_s > mean)
    risen = of_owner(analysis.late, owner, none=False) & rose
    work = sum_by_owner(analysis.outlook.arrivals * risen, owner, analysis.late.size)
    return bool((work > NEGLIGIBLE * analysis.outlook.capacities)[analysis.late].any())


def _commits_s(analysis: Analysis) -> float:
    """Return how many seconds it takes until commits show the effect of a plan.

    This is the time for the median member. The slowest member is not decisive, because a single
    member that commits rarely would delay the plans of the whole group.
    """
    commits = analysis.estimates.commits
    known = np.isfinite(commits.interval_s)
    if not known.any():
        return 0.0
    interval_s, held_s = median(commits.interval_s[known]), median(commits.held_back_s[known])
    return COMMITS_NEEDED * max(interval_s, SEVERAL * held_s)


def _choice(
    analysis: Analysis, offered: Sequence[Candidate | Failure], choose: Choose, limit: int | None
) -> tuple[Candidate | None, str]:
    """Return the chosen candidate (None: none is worth its moves), and the reason as a sentence."""
    usable = [candidate for candidate in offered if isinstance(candidate, Candidate)]
    if not usable:
        errors = "; ".join(": ".join(each) for each in offered if isinstance(each, Failure))
        return None, f"every assignor failed: {errors or 'there is none'}"
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
    """Return the sort key of a candidate: the best candidate has the lowest key.

    If the policy considers rack traffic, all time lags within the objective rank equally.
    """
    forecast = candidate.forecast
    time_lag_s, far = forecast.time_lag_s, 0.0
    if analysis.traffic is not None:
        time_lag_s = max(time_lag_s, analysis.rules.objective_s)
        far = round(analysis.traffic.share(candidate.assignment.owner), 2)
    return time_lag_s, far, round(forecast.utilisation, 2), candidate.moved


def _rack_plan(
    analysis: Analysis, offered: Sequence[Candidate | Failure], choose: Choose
) -> tuple[Candidate | None, str]:
    """Return a plan that only reduces rack traffic (None if there is none), and the reason."""
    usable = [candidate for candidate in offered if isinstance(candidate, Candidate)]
    allowed = usable[:1] if choose == "first" else usable
    plan = next((candidate for candidate in allowed if candidate.assignor == FLAGSHIP), None)
    traffic, rules = analysis.traffic, analysis.rules
    if plan is None or traffic is None:
        return None, f"only the assignor {FLAGSHIP} can reduce cross-rack traffic"
    before, after = analysis.owner, plan.assignment.owner
    what = traffic.describe(before, after, rules.price_per_gb)
    if not plan.moved:
        return None, f"no assignment reduces cross-rack traffic without more time lag; {what}"
    if not _saves_enough(analysis, traffic, traffic.between(before) - traffic.between(after)):
        return None, f"the saving is not worth {plural(plan.moved, 'move')}; {what}"
    return plan, f"{plan.assignor}: {what}"


def _reduces_traffic(analysis: Analysis) -> bool:
    """Whether a healthy group may get a plan that only reduces its traffic between racks."""
    traffic = analysis.traffic
    return (
        traffic is not None
        and analysis.diagnosis.name == "healthy"
        and analysis.kept.time_lag_s <= analysis.rules.objective_s
        and _blocked(analysis) is None
        and _saves_enough(analysis, traffic, traffic.between(analysis.owner))
    )


def _saves_enough(analysis: Analysis, traffic: RackTraffic, per_s: float) -> bool:
    """Return whether a reduction of rack traffic by `per_s` is worth a plan.

    `per_s`: bytes a second. The daily price of `per_s` is compared with the policy's minimum
    saving. If no price is known, `per_s` as a share of all traffic is compared with `BETTER`.
    """
    rules, total = analysis.rules, float(traffic.per_s.sum())
    saved = cost_per_day(traffic.daily_gb(per_s), rules.price_per_gb)
    if saved is not None:
        return saved > 0 and saved >= rules.least_saving_per_day
    return total > 0 and per_s >= BETTER * total


def _worth(analysis: Analysis, candidate: Candidate) -> tuple[bool, str]:
    """Return whether a candidate is worth its moves, and why.

    `candidates._pays` does the same for each reader set, but counts only the moves if the group is
    eager.
    """
    rules, kept = analysis.rules, analysis.kept
    planned, owner = candidate.forecast, candidate.assignment.owner
    what = (
        f"time lag in {length(rules.horizon_s)}: {length(kept.time_lag_s)} without a plan, "
        f"{length(planned.time_lag_s)} with it; most utilised member {kept.utilisation:.0%}, then "
        f"{planned.utilisation:.0%}"
    )
    if analysis.traffic is not None:
        what += f"; {analysis.traffic.describe(analysis.owner, owner, rules.price_per_gb)}"
    if analysis.orphans:
        return True, f"{plural(analysis.orphans, 'partition')} without an owner get one; {what}"
    if not candidate.moved:
        known = "" if analysis.estimates.speeds.measured.all() else ", as far as is known"
        return False, f"no assignment is better{known} ({analysis.diagnosis.name}); {what}"
    avoided_s, slight = gain(analysis, owner)
    if planned.time_lag_s > (1.0 - BETTER) * kept.time_lag_s:
        # The plan hardly helps the member that is furthest behind, so state how it helps the
        # others.
        what += f"; summed over partitions, the plan avoids {length(avoided_s)} of time lag"
    if slight:
        return False, f"too small an improvement ({analysis.diagnosis.name}); {what}"
    stopped = int((owner >= 0).sum()) if analysis.question.eager else candidate.moved
    price = stopped * rules.move_downtime_s
    if avoided_s <= price:
        return False, (
            f"not worth it: summed over partitions, the plan avoids {length(avoided_s)} of "
            f"time lag, and its moves cost {length(price)} of downtime; {what}"
        )
    return True, what
