"""Analysing groups: samples and stored speeds in, rows of candidates out.

Belongs here: asking the questions about groups, and laying the answer out. Does not: the question
(`fairlead.domain.samples.questions`), where the tables come from (`fairlead.spark`).
"""

import json
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
from fairlead.domain.analysis.looks import Looks
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.racks import cost_per_day
from fairlead.domain.analysis.read import Observations, read_together
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.samples.lag import LAG_HISTORY, LAG_SAMPLES, partition_statuses
from fairlead.domain.samples.questions import (
    Group,
    PlanningOptions,
    capacity_rows,
    lasting,
    question_about,
)
from fairlead.errors import GroupError

Row = dict[str, Any]

#: Offsets of partitions at looks that are laid out side by side at once, or few more.
_CELLS: Final = 1_000_000


def analyse_group(group: Group, planning: PlanningOptions) -> list[Row]:
    """Analyse a group.

    Returns
    -------
    Rows of the schema `fairlead.spark.planning.CANDIDATES`, values by column; what is missing is
    null. What is wrong with the group is the error of its only row, `observed`.
    """
    return next(analyse_groups([(group, planning)]))


def analyse_groups(groups: Iterable[tuple[Group, PlanningOptions]]) -> Iterator[list[Row]]:
    """Analyse groups, as `analyse_group` does each of them."""
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
    """Ask about groups, whose looks are seen side by side as far as memory has room for them.

    Yields
    ------
    Each group with its question, or with what is wrong with it.
    """
    asked: list[tuple[Group, PlanningOptions, Question | Exception]] = []
    cells = 0
    for group, planning in groups:
        question = _asked(group, planning)
        asked.append((group, planning, question))
        cells += question.looks.end.size if isinstance(question, Question) else 0
        if cells >= _CELLS:
            yield from _together(asked)
            asked, cells = [], 0
    yield from _together(asked)


def _asked(group: Group, planning: PlanningOptions) -> Question | Exception:
    if group.now["error"]:
        return GroupError(group.now["error"])
    try:
        return question_about(group, planning)
    except Exception as error:  # noqa: BLE001 - as above
        return error


def _together(
    asked: Sequence[tuple[Group, PlanningOptions, Question | Exception]],
) -> Iterator[tuple[Group, PlanningOptions, Question | Exception]]:
    questions = [question for _, _, question in asked if isinstance(question, Question)]
    # One group's data must not fail the others: each is read again, and fails, alone.
    observed: Iterator[Observations | None] = repeat(None)
    with suppress(Exception):
        observed = iter(read_together([question.looks for question in questions]))
    for group, planning, question in asked:
        if isinstance(question, Question):
            yield group, planning, replace(question, observations=next(observed))
        else:
            yield group, planning, question


def _rows(group: Group, planning: PlanningOptions, question: Question | Exception) -> list[Row]:
    """Return what is known of the observed assignment, then of each candidate."""
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
    """Return the analysis of a question, under planning options."""
    return decide(
        question,
        assignors=planning.assignors,
        options=planning.options,
        choose=planning.choose,
        compare=planning.compare,
    )


def rows_of(question: Question, decision: PlanDecision, planning: PlanningOptions) -> list[Row]:
    """Lay an analysis out in rows, as `analyse_group` does, without the columns of its key."""
    problem, price = question.problem, planning.rules.price_per_gb
    far = None if decision.traffic is None else decision.traffic.gb_per_day(problem.owner)
    observed = {
        "assignor": OBSERVED,
        "statuses": _statuses(question.looks) if decision.outcome == "plan" else [],
        **_figures(Assignment(problem, problem.owner)),
        **_laid_out(problem),
        **_analysed(decision, problem),
        **_far(far, price),
    }
    others = (
        _candidate(candidate) | _far(candidate.rack_gb_per_day, price)
        for candidate in decision.candidates
    )
    return [observed, *others]


def _far(gb_per_day: float | None, price_per_gb: float | None) -> Row:
    """Return what comes from other racks a day, and what it costs."""
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
        "late_s": forecast.late_s,
        "utilisation": forecast.utilisation,
        "caught_up_s": forecast.caught_up_s,
        "outcome": assignment.outcome,
        "owner": assignment.owner,
        "reasons": reasons,
        "frontier": [{"moves": moves, "late_s": late_s} for moves, late_s in candidate.frontier],
    }


def _analysed(decision: PlanDecision, problem: Problem) -> Row:
    """Return what the analysis says of the group as it is."""
    diagnosis, chosen = decision.diagnosis, decision.chosen
    return {
        "late_s": decision.kept.late_s,
        "utilisation": decision.kept.utilisation,
        "loss_s": decision.kept.loss_s,
        "caught_up_s": decision.kept.caught_up_s,
        "consumers_wanted": decision.size.wanted,
        "consumers_why": decision.size.why,
        "costs": json.dumps(decision.costs.intervals(problem)),
        "remembered_costs": json.dumps(decision.costs.rows(problem)),
        "reported": json.dumps(decision.reported(problem)),
        "diagnosis": diagnosis.name,
        "names": list(diagnosis.names),
        "evidence": diagnosis.evidence,
        "decision": decision.outcome,
        "decision_reason": decision.reason,
        "chosen": None if chosen is None else chosen.assignor,
        "capacities": capacity_rows(lasting(decision.capacities, problem.members)),
        "arrival_rates": decision.outlook.arrivals,
        "backlog": decision.outlook.backlog,
        "behind_s": decision.outlook.late_s,
        "capacity_used": decision.outlook.capacities,
        "reasons": [],
        "owner": problem.owner,
    }


def _statuses(looks: Looks) -> list[str]:
    """Return the statuses that the partitions have, which approval asks for."""
    return partition_statuses(looks.last(LAG_HISTORY.total_seconds(), LAG_SAMPLES + 1))


def _laid_out(problem: Problem) -> Row:
    return {
        "topics": list(problem.topics),
        "partition_counts": problem.partition_counts,
        "members": list(problem.members),
        "weights": problem.weights,
    }


def _figures(assignment: Assignment) -> Row:
    return measure(assignment.problem, assignment).as_dict()
