"""Judging one group: its looks, members and memory in, rows of candidates out. Runs on executors.

Belongs here: building the question about a group, asking it, and laying the answer out. Does not:
where the tables come from (`planning`), the judgement itself (`fairlead.judgement`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assignors.assignment import Assignment
from assignors.metrics import measure
from assignors.problem import Member, Problem
from fairlead.judgement.candidates import Candidate
from fairlead.judgement.capacities import Capacity
from fairlead.judgement.decision import Choose, Judgement, Question, judge
from fairlead.judgement.rules import Rules
from fairlead.looks.arrays import looks_of

OBSERVED: Final = "observed"
"""The name under which a group's current assignment stands among the candidates."""

Row = dict[str, Any]

_COOPERATIVE: Final = "cooperative-sticky"
_FOLLOWING: Final = "fairlead"
#: A member id is the client's id and a UUID: a name that no restart keeps.
_MEMBER_ID: Final = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


@dataclass(frozen=True)
class Ways:
    """How groups of one policy are judged.

    Parameters
    ----------
    rules
        The policy's.
    assignors, options, choose
        As for `judge`.
    latest
        Whether consumers without a commit start at the log's end.
    compare
        Whether candidates are computed where no plan is called for, too.
    """

    rules: Rules = field(default_factory=Rules)
    assignors: tuple[str, ...] = ("sticky-lag-aware",)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    choose: Choose = "first"
    latest: bool = False
    compare: bool = True


@dataclass(frozen=True, eq=False)
class Group:
    """All that is known of one group.

    Parameters
    ----------
    described
        Its row of the snapshot's groups: snapshot_id, group, error, protocol.
    members
        Its rows of the snapshot's members.
    looks
        Its looks, the snapshot among them; of the schema `fairlead.looks.look.LOOKS`.
    capacities
        Remembered of its members: rows of member, records_per_s, measured, at.
    changed_at
        When a plan last took effect, seconds since the epoch; None: never.
    """

    described: Mapping[str, Any]
    members: Sequence[Mapping[str, Any]]
    looks: pa.Table
    capacities: Sequence[Mapping[str, Any]] = ()
    changed_at: float | None = None


def judge_group(group: Group, ways: Ways) -> list[Row]:
    """Judge a group.

    Returns
    -------
    Rows of the schema `fairlead.spark.planning.CANDIDATES`, values by column; what is missing is
    null. What is wrong with the group is the error of its only row, `observed`.
    """
    try:
        rows = list(_rows(group, ways))
    except Exception as error:  # noqa: BLE001 - one group's data must not fail the others' job
        rows = [{"assignor": OBSERVED, "error": f"The group cannot be planned: {error!r}"}]
    key = {name: group.described[name] for name in ("snapshot_id", "group")}
    return [row | key for row in rows]


def _rows(group: Group, ways: Ways) -> Iterator[Row]:
    """Yield what is known of the observed assignment, then of each candidate."""
    if group.described["error"]:
        yield {"assignor": OBSERVED, "error": group.described["error"]}
        return
    question = question_about(group, ways)
    problem = question.problem
    observed = {"assignor": OBSERVED, **_figures(Assignment(problem, problem.owner))}
    if not problem.members:
        yield observed | {"outcome": "The group has no members"}
        return
    if not problem.partition_total:
        yield observed | {"outcome": "No member reads a topic that has partitions"}
        return
    judgement = judge(
        question,
        assignors=ways.assignors,
        options=ways.options,
        choose=ways.choose,
        compare=ways.compare,
    )
    yield observed | _laid_out(problem) | _judged(judgement, problem)
    for candidate in judgement.candidates:
        yield _candidate(candidate)


def question_about(group: Group, ways: Ways) -> Question:
    """Return what is asked about a group that could be read.

    Raises
    ------
    ValueError
        The offsets of some partition are not known.
    """
    members = {
        row["member"]: Member(
            topics=row["topics"],
            owned=_owned(row["partitions"]),
            generation=row["generation"],
            instance_id=row["instance_id"],
        )
        for row in group.members
    }
    read = {topic for member in members.values() for topic in member.topics}
    newest = group.looks.slice(group.looks.num_rows - 1).select(["topics", "counts"]).to_pylist()[0]
    counts = {
        topic: count
        for topic, count in zip(newest["topics"], newest["counts"], strict=True)
        if topic in read
    }
    topics = sorted(counts)
    looks = looks_of(
        group.looks,
        topics,
        [counts[topic] for topic in topics],
        sorted(members),
        latest=ways.latest,
    )
    lags = dict(
        zip(topics, np.split(looks.lag[-1], np.cumsum([*counts.values()])[:-1]), strict=False)
    )
    problem = Problem.of(counts, members, lags)
    unknown = np.flatnonzero(looks.end[-1] < 0)
    if unknown.size:
        topic, _ = problem.partition_name(int(unknown[0]))
        raise ValueError(f"topic {topic}: the lag of some partition is not known")
    return Question(
        problem=problem,
        looks=looks,
        rules=ways.rules,
        capacities={
            row["member"]: Capacity(row["records_per_s"], row["measured"], row["at"])
            for row in group.capacities
        },
        changed_at=None if group.changed_at is None else min(group.changed_at, looks.now),
        eager=_eager(group),
    )


def _eager(group: Group) -> bool:
    """Whether every partition of a group stands still at each rebalance, as far as Kafka tells."""
    protocol = group.described["protocol"]
    if protocol == _FOLLOWING:  # cooperative followers say which generation they own from
        return any(row["generation"] is None for row in group.members)
    return bool(protocol) and protocol != _COOPERATIVE


def _owned(partitions: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    for entry in partitions:
        owned.setdefault(entry["topic"], []).append(entry["partition"])
    return owned


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
        "outcome": assignment.outcome,
        "owner": assignment.owner,
        "reasons": reasons,
    }


def _judged(judgement: Judgement, problem: Problem) -> Row:
    """Return what the judgement says of the group as it is."""
    diagnosis, chosen = judgement.diagnosis, judgement.chosen
    return {
        "late_s": judgement.kept.late_s,
        "utilisation": judgement.kept.utilisation,
        "diagnosis": diagnosis.name,
        "names": list(diagnosis.names),
        "evidence": diagnosis.evidence,
        "decision": judgement.outcome,
        "decision_reason": judgement.reason,
        "chosen": None if chosen is None else chosen.assignor,
        "capacities": [
            {"member": name, **vars(one)}
            for name, one in judgement.capacities.items()
            if name in problem.members or not _MEMBER_ID.search(name)
        ],
        "arrival_rates": judgement.outlook.arrivals,
        "capacity_used": judgement.outlook.capacities,
        "reasons": [],
        "owner": problem.owner,
    }


def _laid_out(problem: Problem) -> Row:
    return {
        "topics": list(problem.topics),
        "partition_counts": problem.partition_counts,
        "members": list(problem.members),
        "weights": problem.weights,
    }


def _figures(assignment: Assignment) -> Row:
    return measure(assignment.problem, assignment).as_dict()
