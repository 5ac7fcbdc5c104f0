"""Analysis of groups: from samples and remembered estimates to rows of candidates.

Belongs here: analysing many groups together, and the rows. Does not: the input of an analysis
(`fairlead.domain.samples.questions`), reading and writing tables (`fairlead.spark`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from typing import Any, Final

from assignors.assignment import Assignment
from assignors.metrics import measure
from assignors.problem import Problem
from fairlead.domain.analysis.candidates import Candidate
from fairlead.domain.analysis.decide import PlanDecision, decide
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import cost_per_day
from fairlead.domain.analysis.read import Observations, read_together
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.records import Findings
from fairlead.domain.samples.lag import partition_statuses
from fairlead.domain.samples.questions import (
    Group,
    PlanningOptions,
    question_about,
)
from fairlead.errors import GroupError

Row = dict[str, Any]

#: Approximate maximum number of cells, samples x partitions, that are analysed at once.
_CELLS: Final = 1_000_000
#: Names of members that do not return after a restart: a client id and a UUID or, if the broker
#: assigns, a UUID in base64 (which rarely lacks capitals or small letters).
_MEMBER_ID: Final = re.compile(
    r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
    r"|^(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_+/-]{22}$"
)


def analyse_group(group: Group, planning: PlanningOptions) -> list[Row]:
    """Analyse a group.

    Returns
    -------
    Rows of the schema `fairlead.spark.planning.CANDIDATES`, values by column; missing values are
    null. A group that cannot be analysed has one row, `observed`, with the error.
    """
    return next(analyse_groups([(group, planning)]))


def analyse_groups(groups: Iterable[tuple[Group, PlanningOptions]]) -> Iterator[list[Row]]:
    """Yield the rows of each group, as `analyse_group` returns them."""
    for group, planning, question in questions_about(groups):
        try:
            rows = _rows(group, planning, question)
        except Exception as error:  # noqa: BLE001 - one group's data must not fail the others' job
            rows = [{"assignor": OBSERVED, "error": f"The group cannot be planned: {error!r}"}]
        key = {"snapshot_id": group.now["sample_id"], "group": group.name}
        yield [row | key for row in rows]


def questions_about(
    groups: Iterable[tuple[Group, PlanningOptions]],
) -> Iterator[tuple[Group, PlanningOptions, Question | Exception]]:
    """Yield each group with its question, or with the error.

    Samples of several groups are read together, as far as `_CELLS` allows.
    """
    read: list[tuple[Group, PlanningOptions, Question | Exception]] = []
    cells = 0
    for group, planning in groups:
        question = _question(group, planning)
        read.append((group, planning, question))
        cells += question.series.end.size if isinstance(question, Question) else 0
        if cells >= _CELLS:
            yield from _together(read)
            read, cells = [], 0
    yield from _together(read)


def _question(group: Group, planning: PlanningOptions) -> Question | Exception:
    if group.now["error"]:
        return GroupError(group.now["error"])
    try:
        return question_about(group, planning)
    except Exception as error:  # noqa: BLE001 - one group's data must not fail the job
        return error


def _together(
    read: Sequence[tuple[Group, PlanningOptions, Question | Exception]],
) -> Iterator[tuple[Group, PlanningOptions, Question | Exception]]:
    questions = [question for _, _, question in read if isinstance(question, Question)]
    # If reading fails, each group is read again separately, so that only the faulty one fails.
    observed: Iterator[Observations | None] = repeat(None)
    with suppress(Exception):
        observed = iter(read_together([question.series for question in questions]))
    for group, planning, question in read:
        if isinstance(question, Question):
            yield group, planning, replace(question, observations=next(observed))
        else:
            yield group, planning, question


def _rows(group: Group, planning: PlanningOptions, question: Question | Exception) -> list[Row]:
    """Return the row of the present assignment, then those of the candidates."""
    if group.now["error"]:
        return [{"assignor": OBSERVED, "error": group.now["error"]}]
    if isinstance(question, Exception):
        raise question
    problem = question.problem
    if problem.members and problem.partition_total:
        return rows_of(question, ask(question, planning), planning)
    observed = {"assignor": OBSERVED, **_figures(Assignment(problem, problem.owner))}
    if not problem.members:
        return [observed | {"outcome": "The group has no members"}]
    return [observed | {"outcome": "No member reads a topic that has partitions"}]


def ask(question: Question, planning: PlanningOptions) -> PlanDecision:
    """Return the decision on a question, by planning options."""
    return decide(
        question,
        assignors=planning.assignors,
        options=planning.options,
        choose=planning.choose,
        compare=planning.compare,
    )


def rows_of(question: Question, decision: PlanDecision, planning: PlanningOptions) -> list[Row]:
    """Return the rows of a decision, without the columns of their key."""
    problem, price = question.problem, planning.rules.price_per_gb
    far = None if decision.traffic is None else decision.traffic.gb_per_day(problem.owner)
    observed = {
        "assignor": OBSERVED,
        "statuses": partition_statuses(question.series) if decision.outcome == "plan" else [],
        **_figures(Assignment(problem, problem.owner)),
        "topics": list(problem.topics),
        "partition_counts": problem.partition_counts,
        "members": list(problem.members),
        "weights": problem.weights,
        **_analysed(decision, problem),
        **_far(far, price),
    }
    others = (
        _candidate(candidate) | _far(candidate.rack_gb_per_day, price)
        for candidate in decision.candidates
    )
    return [observed, *others]


def _far(gb_per_day: float | None, price_per_gb: float | None) -> Row:
    """Return the columns for cross-rack traffic."""
    cost = cost_per_day(gb_per_day, price_per_gb)
    return {"rack_gb_per_day": gb_per_day, "rack_cost_per_day": cost}


def _candidate(candidate: Candidate) -> Row:
    assignment, forecast = candidate.assignment, candidate.forecast
    if assignment is None or forecast is None:
        return {"assignor": candidate.assignor, "error": candidate.error}
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
        "frontier": [
            {"moves": moves, "forecast_time_lag_s": forecast_time_lag_s}
            for moves, forecast_time_lag_s in candidate.frontier
        ],
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
