"""Questions and answers of `fairlead decide` as JSON objects, one a line.

Belongs here: validating a line, and converting it to arrays. Belongs elsewhere: the analysis
(`decide`), its memory (`memory`), and reading lines and writing errors
(`fairlead.common.json_lines`). A line has the whole input of a decision. An answer has a `memory`,
which the caller copies into the next question about the group.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from assignors.problem import InvalidProblemError, Member, Problem
from fairlead.common.json_lines import an_object, brief, check_keys
from fairlead.common.wrong_values import what_is_wrong
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.analysis.decide import PlanDecision, decide
from fairlead.domain.analysis.question import Question
from fairlead.domain.analysis.sample_series import NONE, Float64, Int32, Int64, SampleSeries
from fairlead.domain.decide_json.memory import as_row, capacities_of, moment, recalled, written
from fairlead.domain.decide_json.reports import by_topic, reports_of
from fairlead.domain.policy import Policy

_KEYS: Final = frozenset(
    {"policy", "topics", "members", "snapshots", "capacities", "memory", "changed_at"}
)
_MEMBER_KEYS: Final = frozenset({"topics", "instance_id", "rack"})
_SNAPSHOT_KEYS: Final = frozenset(
    {"at", "begin", "end", "committed", "owners", "stable_end", "reports"}
)
_LARGEST_OFFSET: Final = 2**63 - 1
#: Maximum number of partitions: an analysis takes 5 KB of memory for each partition.
_LARGEST_TOTAL: Final = 1_000_000


def answer_question(line: dict[str, Any]) -> dict[str, Any]:
    """Answer one question about a group.

    Raises
    ------
    InvalidProblemError
        The message names the invalid part of the question.

    Examples
    --------
    >>> line = {
    ...     "topics": {"t": 1},
    ...     "members": {"a": {"topics": ["t"]}},
    ...     "snapshots": [
    ...         {"at": "2026-03-02T00:00:00Z", "end": {"t": [9]}, "owners": {"t": ["a"]}},
    ...     ],
    ... }
    >>> answer = answer_question(line)
    >>> answer["outcome"], answer["diagnosis"]
    ('no change', 'unknown')
    """
    check_keys(line, _KEYS, required=("topics", "members", "snapshots"), where="")
    policy = _policy(line.get("policy"))
    question = _question(line, policy)
    decision = decide(
        question,
        assignors=policy.assignors[:1] if policy.choose == "first" else policy.assignors,
        options=policy.options,
        choose="first" if policy.choose == "first" else "best",
    )
    return _answer(decision, question)


def _policy(fields: Any) -> Policy:
    if fields is None:
        return Policy()
    try:
        return Policy(**an_object(fields, "policy"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["policy", *map(str, first["loc"])])
        raise InvalidProblemError(f"{where}: {what_is_wrong(first, Policy)}") from None


def _question(line: Mapping[str, Any], policy: Policy) -> Question:
    members = _members(line["members"])
    layout = Problem.of(line["topics"], members)
    if layout.partition_total > _LARGEST_TOTAL:
        raise InvalidProblemError(
            f"topics: {layout.partition_total} partitions are more than the {_LARGEST_TOTAL} that "
            "a group may have"
        )
    series = _samples(line["snapshots"], layout, latest=policy.auto_offset_reset == "latest")
    owned = _owned(series, layout)
    problem = Problem.of(
        line["topics"],
        {
            name: Member(member.topics, owned.get(name, {}), None, member.instance_id, member.rack)
            for name, member in members.items()
        },
        {
            topic: series.lag[-1][layout.topic_offsets[number] : layout.topic_offsets[number + 1]]
            for number, topic in enumerate(layout.topics)
        },
    )
    changed_at = line.get("changed_at")
    changed_at = None if changed_at is None else min(moment(changed_at, "changed_at"), series.now)
    capacities, plans, costs, forgotten = _remembered(line, series, problem)
    reports = reports_of(line["snapshots"], layout, len(series.members))
    before = [at for at in plans if changed_at is not None and at < changed_at]
    return Question(
        problem=problem,
        series=series,
        rules=policy.rules(),
        capacities=capacities,
        costs=costs,
        forgotten=forgotten,
        reports=reports,
        changes=[] if changed_at is None else [*before, changed_at],
    )


def _members(by_name: Any) -> dict[str, Member]:
    members = {}
    for name, value in an_object(by_name, "members").items():
        where = f"members.{name}"
        check_keys(an_object(value, where), _MEMBER_KEYS, required=("topics",), where=f"{where}.")
        members[name] = Member(
            value["topics"], instance_id=value.get("instance_id"), rack=value.get("rack")
        )
    return members


def _samples(snapshots: Any, layout: Problem, *, latest: bool) -> SampleSeries:
    if not isinstance(snapshots, list) or not snapshots:
        raise InvalidProblemError(
            f"snapshots: {brief(snapshots)} is not a list of at least one snapshot"
        )
    at = np.array([_at(snapshot, place) for place, snapshot in enumerate(snapshots)])
    backwards = np.flatnonzero(np.diff(at) <= 0)
    if backwards.size:
        place = int(backwards[0]) + 1
        raise InvalidProblemError(
            f"snapshots[{place}].at: {brief(snapshots[place]['at'])} is not after "
            f"{brief(snapshots[place - 1]['at'])}: order snapshots by time"
        )
    last = len(snapshots) - 1
    names = list(layout.members)
    numbers = {name: index for index, name in enumerate(names)}
    size = len(snapshots), layout.partition_total
    tables = {
        key: np.full(size, NONE, np.int64) for key in ("begin", "end", "committed", "stable_end")
    }
    owners = np.full(size, NONE, np.int32)
    for place, snapshot in enumerate(snapshots):
        where = f"snapshots[{place}]"
        for key, table in tables.items():
            values = snapshot.get(key)
            _read_offsets(values, table[place], layout, f"{where}.{key}", exact=place == last)
        owned, before = snapshot.get("owners"), snapshots[max(place - 1, 0)].get("owners")
        # Owners rarely change. If they are the same as in the previous sample, they are not parsed
        # again. The last sample is always parsed, so that partitions that do not exist are refused.
        if owned == before and 0 < place < last:
            owners[place] = owners[place - 1]
        else:
            where = f"{where}.owners"
            _read_owners(owned, owners[place], layout, numbers, where, exact=place == last)
    return SampleSeries(at, **tables, members=tuple(numbers), owner=owners, latest=latest)


def _at(snapshot: Any, place: int) -> float:
    where = f"snapshots[{place}]"
    check_keys(
        an_object(snapshot, where), _SNAPSHOT_KEYS, required=("at", "end"), where=f"{where}."
    )
    return moment(snapshot["at"], f"{where}.at")


def _read_offsets(values: Any, offsets: Int64, layout: Problem, where: str, *, exact: bool) -> None:
    """Read a sample's offsets into `offsets`, int64 of shape (P,); `exact` as in `by_topic`."""
    for place, row, topic in by_topic(values, layout, where, exact=exact):
        if set(map(type, row)) != {int} or min(row) < 0 or max(row) > _LARGEST_OFFSET:
            for partition, value in enumerate(row):
                wrong = type(value) is not int or not 0 <= value <= _LARGEST_OFFSET
                if value is not None and wrong:
                    raise InvalidProblemError(
                        f"{topic}[{partition}]: {brief(value)} is not an offset"
                    )
            offsets[place] = [NONE if value is None else value for value in row]
        else:
            offsets[place] = row


def _read_owners(
    values: Any,
    owners: Int32,
    layout: Problem,
    numbers: dict[str, int],
    where: str,
    *,
    exact: bool,
) -> None:
    """Read the owners in a sample into `owners`, (P,); give each new name a number in `numbers`."""
    for place, row, topic in by_topic(values, layout, where, exact=exact):
        if set(map(type, row)) != {str}:
            for partition, name in enumerate(row):
                if name is not None and not isinstance(name, str):
                    raise InvalidProblemError(
                        f"{topic}[{partition}]: {brief(name)} is not a member"
                    )
        for name in dict.fromkeys(row):
            if name is not None:
                numbers.setdefault(name, len(numbers))
        owners[place] = [numbers.get(name, NONE) for name in row]


def _owned(series: SampleSeries, layout: Problem) -> dict[str, dict[str, list[int]]]:
    """Return the partitions that each present member owns in the last sample."""
    owned: dict[str, dict[str, list[int]]] = {}
    owner = series.owner[-1]
    for index in np.flatnonzero((owner >= 0) & (owner < len(layout.members))).tolist():
        topic, partition = layout.partition_name(index)
        owned.setdefault(layout.members[owner[index]], {}).setdefault(topic, []).append(partition)
    return owned


def _remembered(
    line: Mapping[str, Any], series: SampleSeries, problem: Problem
) -> tuple[dict[str, Capacity], tuple[float, ...], CostRows, bool]:
    """Return the content of a line's memory or, without a valid memory, the line's capacities.

    Returns capacities, times at which plans took effect, costs, and whether the memory is invalid.
    """
    capacities = capacities_of(line.get("capacities"), series)
    memory = line.get("memory")
    if memory is None:
        return capacities, (), {}, False
    try:
        return *recalled(memory, series, problem), False
    except InvalidProblemError:
        return capacities, (), {}, True


def _answer(decision: PlanDecision, question: Question) -> dict[str, Any]:
    chosen = decision.chosen
    answer: dict[str, Any] = {
        "outcome": decision.outcome,
        "reason": decision.reason,
        "diagnosis": decision.diagnosis.name,
        "names": list(decision.diagnosis.names),
        "evidence": decision.diagnosis.evidence,
        "forecast": {
            "horizon_s": question.rules.horizon_s,
            "kept": asdict(decision.kept),
        },
        "capacities": {name: as_row(capacity) for name, capacity in decision.capacities.items()},
        "memory": written(
            decision.capacities,
            decision.costs.rows(question.problem),
            question.series,
            question.problem,
            question.changes,
        ),
        "costs": _by_partition(decision.costs.known().round(4), question.problem),
        "seconds_per_record": _seconds(decision, question.problem),
        "consumers": asdict(decision.size),
        "moved": decision.moved,
    }
    if chosen is not None:
        answer["assignment"] = chosen.assignment.by_member()
        answer["forecast"]["planned"] = asdict(chosen.forecast)
    return answer


def _seconds(decision: PlanDecision, problem: Problem) -> dict[str, list[list[float] | None]]:
    """Return the seconds per record of each partition on its present owner; None: unknown."""
    none = np.full((problem.partition_total, 3), np.nan)
    work = decision.work
    return _by_partition(none if work is None else work.seconds_per_record(problem.owner), problem)


def _by_partition(values: Float64, problem: Problem) -> dict[str, list[list[float] | None]]:
    """Return `values` (lower end, value, upper end) by topic and partition; None: unknown."""
    rows = [None if np.isnan(row[0]) else row.tolist() for row in values]
    return {
        topic: rows[problem.topic_offsets[number] : problem.topic_offsets[number + 1]]
        for number, topic in enumerate(problem.topics)
    }
