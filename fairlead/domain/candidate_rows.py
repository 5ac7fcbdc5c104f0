"""Analysis of a group, with the results as rows of the table of candidates.

Belongs here: analysing a group, and filling the rows. Belongs elsewhere: the input of an analysis
(`fairlead.domain.samples.questions`), reading and writing tables (`fairlead.spark`).
"""

import re
from typing import Any, Final

from assignors.assignment import Assignment
from assignors.metrics import measure
from assignors.problem import Problem
from fairlead.domain.analysis.candidates import Candidate, Failure
from fairlead.domain.analysis.decide import PlanDecision, decide
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import cost_per_day
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.records import Findings
from fairlead.domain.samples.lag import partition_statuses
from fairlead.domain.samples.questions import Group, PlanningOptions, question_about

Row = dict[str, Any]

#: Matches names that are member ids, which change with each restart: a client id and a UUID or, if
#: the broker assigns partitions, a UUID in base64 (nearly always with capitals and small letters).
_MEMBER_ID: Final = re.compile(
    r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
    r"|^(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_+/-]{22}$"
)


def analyse_group(group: Group, planning: PlanningOptions) -> list[Row]:
    """Analyse a group, and decide whether it gets a plan.

    Returns
    -------
    Rows of the schema `fairlead.spark.planning.CANDIDATES`: column to value, without null values. A
    group that cannot be analysed has one row, for the assignor `observed`, with the error.
    """
    try:
        rows = _rows(group, planning)
    except Exception as error:  # noqa: BLE001 - one group's data must not fail the others' job
        rows = [{"assignor": OBSERVED, "error": f"The group cannot be planned: {error!r}"}]
    key = {"snapshot_id": group.now["sample_id"], "group": group.name}
    return [row | key for row in rows]


def _rows(group: Group, planning: PlanningOptions) -> list[Row]:
    """Return a row for the present assignment, then a row for each candidate."""
    if group.now["error"]:
        return [{"assignor": OBSERVED, "error": group.now["error"]}]
    question = question_about(group, planning)
    problem = question.problem
    if problem.members and problem.partition_total:
        return rows_of(question, ask(question, planning), planning)
    observed = {"assignor": OBSERVED, **_figures(Assignment(problem, problem.owner))}
    if not problem.members:
        return [observed | {"outcome": "The group has no members"}]
    return [observed | {"outcome": "No member reads a topic that has partitions"}]


def ask(question: Question, planning: PlanningOptions) -> PlanDecision:
    """Return the decision for a question, with the policy's options."""
    return decide(
        question,
        assignors=planning.assignors,
        options=planning.options,
        choose=planning.choose,
        compare=planning.compare,
    )


def rows_of(question: Question, decision: PlanDecision, planning: PlanningOptions) -> list[Row]:
    """Return the rows of a decision, without `snapshot_id` and `group`."""
    problem, price = question.problem, planning.rules.price_per_gb
    far = None if decision.traffic is None else decision.traffic.gb_per_day(problem.owner)
    observed = {
        "assignor": OBSERVED,
        "statuses": partition_statuses(question.series) if decision.outcome == "plan" else [],
        **_figures(Assignment(problem, problem.owner)),
        "topics": list(problem.topics),
        "partition_counts": problem.partition_counts,
        "weights": problem.weights,
        **_analysed(decision, problem),
        **_far(far, price),
    }
    return [observed, *(_candidate(candidate, price) for candidate in decision.candidates)]


def _far(gb_per_day: float | None, price_per_gb: float | None) -> Row:
    """Return the columns for traffic between racks."""
    cost = cost_per_day(gb_per_day, price_per_gb)
    return {"rack_gb_per_day": gb_per_day, "rack_cost_per_day": cost}


def _candidate(candidate: Candidate | Failure, price: float | None) -> Row:
    if isinstance(candidate, Failure):
        return candidate._asdict()
    assignment, forecast = candidate.assignment, candidate.forecast
    reasons = [{"index": index, "reason": why} for index, why in assignment.reasons.items()]
    return {
        "assignor": candidate.assignor,
        **_figures(assignment),
        "forecast_time_lag_s": forecast.time_lag_s,
        "utilisation": forecast.utilisation,
        "catch_up_s": forecast.catch_up_s,
        "outcome": assignment.outcome,
        "owner": assignment.owner,
        "reasons": reasons,
        **_far(candidate.rack_gb_per_day, price),
    }


def _analysed(decision: PlanDecision, problem: Problem) -> Row:
    """Return the columns for the analysis of the present assignment."""
    return {
        **findings_of(decision, problem).columns(),
        "decision": decision.outcome,
        "decision_reason": decision.reason,
        "chosen": None if decision.chosen is None else decision.chosen.assignor,
        "arrival_rates": decision.outlook.arrivals,
        "backlog": decision.outlook.backlog,
        "behind_s": decision.outlook.time_lag_s,
        "capacity_used": decision.outlook.capacities,
        "reasons": [],
        "owner": problem.owner,
    }


def findings_of(decision: PlanDecision, problem: Problem) -> Findings:
    """Return the findings of an analysis."""
    diagnosis, forecast = decision.diagnosis, decision.kept
    return Findings(
        diagnosis=diagnosis.name,
        names=diagnosis.names,
        evidence=diagnosis.evidence,
        forecast_time_lag_s=forecast.time_lag_s,
        utilisation=forecast.utilisation,
        loss_s=forecast.loss_s,
        catch_up_s=forecast.catch_up_s,
        consumers_wanted=decision.size.wanted,
        consumers_why=decision.size.why,
        costs=decision.costs.intervals(problem),
        remembered_costs=decision.costs.rows(problem),
        reported={} if decision.work is None else decision.work.row(problem),
        capacities={
            name: capacity
            for name, capacity in decision.capacities.items()
            if name in problem.members or not _MEMBER_ID.search(name)
        },
    )


def _figures(assignment: Assignment) -> Row:
    return measure(assignment.problem, assignment).as_dict()
