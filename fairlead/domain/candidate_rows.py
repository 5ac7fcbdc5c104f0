"""Judging groups: samples and stored speeds in, rows of candidates out.

Belongs here: asking the questions about groups, and laying the answer out. Does not: the question
(`fairlead.domain.looks.questions`), where the tables come from (`fairlead.spark`).
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
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.judgement.candidates import Candidate
from fairlead.domain.judgement.decide import Judgement, judge
from fairlead.domain.judgement.looks import Looks
from fairlead.domain.judgement.question import Question
from fairlead.domain.judgement.racks import cost_per_day
from fairlead.domain.judgement.read import Observations, read_together
from fairlead.domain.looks.lag import LEAST, LOOKED_BACK, partition_statuses
from fairlead.domain.looks.questions import (
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


def judge_group(group: Group, planning: PlanningOptions) -> list[Row]:
    """Judge a group.

    Returns
    -------
    Rows of the schema `fairlead.spark.planning.CANDIDATES`, values by column; what is missing is
    null. What is wrong with the group is the error of its only row, `observed`.
    """
    return next(judge_groups([(group, planning)]))


def judge_groups(groups: Iterable[tuple[Group, PlanningOptions]]) -> Iterator[list[Row]]:
    """Judge groups, as `judge_group` does each of them."""
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


def ask(question: Question, planning: PlanningOptions) -> Judgement:
    """Return the judgement of a question, under planning options."""
    return judge(
        question,
        assignors=planning.assignors,
        options=planning.options,
        choose=planning.choose,
        compare=planning.compare,
    )


def rows_of(question: Question, judgement: Judgement, planning: PlanningOptions) -> list[Row]:
    """Lay a judgement out in rows, as `judge_group` does, without the columns of its key."""
    problem, price = question.problem, planning.rules.price_per_gb
    far = None if judgement.traffic is None else judgement.traffic.gb_per_day(problem.owner)
    observed = {
        "assignor": OBSERVED,
        "statuses": _statuses(question.looks) if judgement.outcome == "plan" else [],
        **_figures(Assignment(problem, problem.owner)),
        **_laid_out(problem),
        **_judged(judgement, problem),
        **_far(far, price),
    }
    others = (
        _candidate(candidate) | _far(candidate.rack_gb_per_day, price)
        for candidate in judgement.candidates
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


def _judged(judgement: Judgement, problem: Problem) -> Row:
    """Return what the judgement says of the group as it is."""
    diagnosis, chosen = judgement.diagnosis, judgement.chosen
    return {
        "late_s": judgement.kept.late_s,
        "utilisation": judgement.kept.utilisation,
        "loss_s": judgement.kept.loss_s,
        "caught_up_s": judgement.kept.caught_up_s,
        "consumers_wanted": judgement.size.wanted,
        "consumers_why": judgement.size.why,
        "costs": json.dumps(judgement.costs.told(problem)),
        "remembered_costs": json.dumps(judgement.costs.rows(problem)),
        "reported": json.dumps(judgement.reported(problem)),
        "diagnosis": diagnosis.name,
        "names": list(diagnosis.names),
        "evidence": diagnosis.evidence,
        "decision": judgement.outcome,
        "decision_reason": judgement.reason,
        "chosen": None if chosen is None else chosen.assignor,
        "capacities": capacity_rows(lasting(judgement.capacities, problem.members)),
        "arrival_rates": judgement.outlook.arrivals,
        "backlog": judgement.outlook.backlog,
        "behind_s": judgement.outlook.late_s,
        "capacity_used": judgement.outlook.capacities,
        "reasons": [],
        "owner": problem.owner,
    }


def _statuses(looks: Looks) -> list[str]:
    """Return the statuses that the partitions have, which approval asks for."""
    return partition_statuses(looks.last(LOOKED_BACK.total_seconds(), LEAST + 1))


def _laid_out(problem: Problem) -> Row:
    return {
        "topics": list(problem.topics),
        "partition_counts": problem.partition_counts,
        "members": list(problem.members),
        "weights": problem.weights,
    }


def _figures(assignment: Assignment) -> Row:
    return measure(assignment.problem, assignment).as_dict()
