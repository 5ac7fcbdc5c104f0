"""Diagnoses of the groups that were just sampled, and requests for plans.

Belongs here: analysing groups between planning runs, from samples and without Spark. Belongs
elsewhere: the analysis (`fairlead.domain.analysis`), storing findings (`fairlead.store`), and
starting runs.
"""

import logging
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.archive import SampleArchive, with_history
from fairlead.domain.advice import with_advice
from fairlead.domain.analysis.decide import PlanDecision
from fairlead.domain.analysis.question import Question
from fairlead.domain.basis import differences
from fairlead.domain.candidate_rows import ask, findings_of
from fairlead.domain.diagnoses import NO_MEMBERS
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.history import EVERY_SAMPLE, HISTORY
from fairlead.domain.plan_requests import PlanRequest
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.records import Findings, StoredPlan
from fairlead.domain.regression import Regression, find_regression
from fairlead.domain.samples.questions import Group, PlanningOptions, question_about
from fairlead.domain.stored_samples import LastStored, StoredSample, digest_of
from fairlead.errors import InvalidPlanError, TamperedPlanError

_log = logging.getLogger(__name__)

#: Minimum number of groups for which several processes are used: a process needs seconds to start.
MANY: Final = 1_000

#: Kafka's name for the state of a group without members.
_EMPTY: Final = "Empty"
_NO_MEMBERS: Final = Findings(
    diagnosis="unknown",
    names=(),
    evidence=NO_MEMBERS,
    forecast_time_lag_s=0.0,
    utilisation=0.0,
    capacities={},
)


@dataclass(frozen=True)
class Diagnosed:
    """The diagnoses of groups.

    Parameters
    ----------
    findings
        Maps each group to a pair: the time of its sample, and the results of its analysis.
    requests
        Maps each group that needs a plan to the reasons for a new plan. Other groups are missing.
    worse
        Maps groups to the regressions that their published plans seem to have caused.
    """

    findings: dict[str, tuple[datetime, Findings]] = field(default_factory=dict)
    requests: dict[str, PlanRequest] = field(default_factory=dict)
    worse: dict[str, Regression] = field(default_factory=dict)


def diagnose(
    archive: SampleArchive,
    seen: Sequence[pa.Table],
    policies: Sequence[Policy],
    memory: GroupMemories,
) -> Diagnosed:
    """Analyse groups with the samples of the last hour.

    Parameters
    ----------
    archive
        The archive of earlier samples; it may have the newest sample already.
    seen
        The newest sample, divided into tables; each group is in one table.
    policies
        The policies of the settings.
    memory
        Results of earlier analyses of the groups, such as the capacities of members.

    Returns
    -------
    Diagnoses of all groups except those that could not be read, or whose members read nothing. A
    group without members has the diagnosis `unknown` if it had members before.

    Notes
    -----
    For a healthy group, only the forecast is computed. Candidates are computed if the forecast
    shows that a plan may be needed. If there are `MANY` groups or more, several processes analyse
    them, at most one per core.
    """
    work = partial(_diagnose, archive, policies)
    questions = [(portion, memory.select(portion["group"].to_pylist())) for portion in seen]
    if sum(portion.num_rows for portion in seen) < MANY:
        portions = [work(*question) for question in questions]
    else:
        # Spawned, not forked, because clients of brokers and databases have threads.
        processes = min(len(seen), os.cpu_count() or 1)
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            portions = list(pool.map(work, *zip(*questions, strict=True)))
    diagnosed = Diagnosed()
    for portion in portions:
        diagnosed.findings.update(portion.findings)
        diagnosed.requests.update(portion.requests)
        diagnosed.worse.update(portion.worse)
    return diagnosed


def _diagnose(
    archive: SampleArchive, policies: Sequence[Policy], seen: pa.Table, memory: GroupMemories
) -> Diagnosed:
    diagnosed = _analysed(archive, seen, policies, memory, EVERY_SAMPLE)
    # If no earlier analysis has stored the capacities of a group's members, one hour may be too
    # short to measure them. Before such a group gets a plan, analyse the samples of a whole day.
    unknown = [name for name in diagnosed.requests if not memory.capacities.get(name)]
    if not unknown:
        return diagnosed
    few = seen.filter(pc.is_in(seen["group"], pa.array(unknown, pa.string())))
    again = _analysed(archive, few, policies, memory, HISTORY)
    known = {
        name: request for name, request in diagnosed.requests.items() if name not in again.findings
    }
    findings, worse = diagnosed.findings | again.findings, diagnosed.worse | again.worse
    return Diagnosed(findings, known | again.requests, worse)


def _analysed(
    archive: SampleArchive,
    seen: pa.Table,
    policies: Sequence[Policy],
    memory: GroupMemories,
    history: timedelta,
) -> Diagnosed:
    """Analyse groups with the samples of the last `history`; log errors of single groups."""
    diagnosed = Diagnosed()
    if not seen.num_rows:
        return diagnosed
    at = seen["at"][0].as_py()
    groups: list[tuple[Group, PlanningOptions]] = []
    for name, samples in with_history(archive, seen, history).items():
        changes = [changed.timestamp() for changed in memory.changes.get(name, ())]
        group = Group(samples, memory.capacities.get(name, {}), changes, memory.costs.get(name, {}))
        if group.now["error"] is not None:
            continue
        if group.now["members"]:
            policy = policy_for(name, policies)
            groups.append((group, PlanningOptions.of(policy, compare=False)))
        elif group.now["state"] == _EMPTY and name in memory.capacities:
            costs = memory.costs.get(name, {})
            diagnosed.findings[name] = (at, replace(_NO_MEMBERS, remembered_costs=costs))
    for group, planning in groups:
        try:
            question = question_about(group, planning)
            _analyse(group, question, planning, diagnosed, last=memory.samples.get(group.name))
        except ValueError as error:  # the sample cannot be analysed; offsets may be missing
            _log.info("group %s: not diagnosed: %s", group.name, error)
        except Exception:  # noqa: BLE001 - one group's data must not end the sample
            _log.exception("group %s: not diagnosed", group.name)
    return diagnosed


def _analyse(
    group: Group,
    question: Question,
    planning: PlanningOptions,
    diagnosed: Diagnosed,
    *,
    last: LastStored | None,
) -> None:
    """Analyse a group and add the result; skip it if its members read nothing."""
    if not question.problem.partition_total:
        return
    decision = ask(question, planning)
    name, at = group.name, group.now["at"]
    sample = _sample(group, question, decision)
    findings = findings_of(decision, question.problem)
    evidence = with_advice(findings.evidence, group.now)
    new_sample = sample if sample.is_news(last) else None
    findings = replace(findings, evidence=evidence, seen=sample, kept=new_sample)
    late = decision.kept.time_lag_s > question.rules.objective_s
    worse = find_regression(question) if late and question.changes else None
    if worse is not None:
        diagnosed.worse[name] = worse
    if decision.outcome == "plan":
        diagnosed.requests[name] = _request(decision)
    diagnosed.findings[name] = (at, findings)


def members_changed(
    requests: Mapping[str, PlanRequest],
    seen: Sequence[pa.Table],
    published: Sequence[StoredPlan],
) -> dict[str, PlanRequest]:
    """Add to each plan request how the group's members have changed since its published plan.

    Consumers adapt a plan to the present members, so most changes need no new plan. If a group
    needs a new plan nevertheless, the changes of its members are a likely reason.

    Parameters
    ----------
    published
        The published plans of the groups of `requests`.
    """
    explained = dict(requests)
    plans = {plan.group: plan for plan in published if plan.group in requests}
    names = pa.array(list(plans), pa.string())
    for portion in seen if plans else ():
        planned_groups = portion.filter(pc.is_in(portion["group"], names))
        columns = ["group", "topics", "counts", "members", "subscriptions"]
        for row in planned_groups.select(columns).to_pylist():
            request, plan = requests[row["group"]], plans[row["group"]]
            try:
                changes = "; ".join(_changes(plan, row))
            except Exception:  # noqa: BLE001 - one group's data must not end the sample
                _log.exception(
                    "group %s: its members cannot be compared with its plan's", row["group"]
                )
                continue
            if changes:
                why = f"since version {plan.version}: {changes}; {request.why}"
                explained[plan.group] = PlanRequest(f"{changes}; {request.what}", why)
    return explained


def _changes(plan: StoredPlan, row: Mapping[str, Any]) -> list[str]:
    try:
        document = plan.verify()
    except (InvalidPlanError, TamperedPlanError):
        return []
    read = dict(zip(row["members"], row["subscriptions"], strict=True))
    return differences(document, read, dict(zip(row["topics"], row["counts"], strict=True)))


def _sample(group: Group, question: Question, decision: PlanDecision) -> StoredSample:
    """Return the figures of a group's newest sample, which are stored for the group's page."""
    problem, outlook = question.problem, decision.outlook
    known = decision.diagnosis.name != "unknown"
    laid_out = {
        "topics": list(problem.topics),
        "counts": problem.partition_counts.tolist(),
        "members": list(problem.members),
        "owner": problem.owner.tolist(),
    }
    return StoredSample(
        at=group.now["at"],
        digest=digest_of(**laid_out),
        forecast_time_lag_s=decision.kept.time_lag_s if known else None,
        utilisation=decision.kept.utilisation if known else None,
        group_type=group.now["group_type"],
        protocol=group.now["protocol"],
        **laid_out,
        lag=question.series.lag[-1].tolist(),
        arrival_rate=outlook.records.tolist(),
        behind_s=outlook.time_lag_s.tolist(),
        capacity_share=outlook.capacity_share(problem.owner).tolist(),
    )


def _request(decision: PlanDecision) -> PlanRequest:
    diagnosis = decision.diagnosis
    if decision.for_racks:
        return PlanRequest("traffic between racks", decision.reason)
    what = ": ".join(filter(None, (diagnosis.name, ", ".join(diagnosis.names))))
    return PlanRequest(what, f"{diagnosis.name}: {diagnosis.evidence}")
