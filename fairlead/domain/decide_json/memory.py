"""The memory in an answer of `fairlead decide`: the caller copies it into the next question.

Belongs here: writing a memory of limited size, and validating one. Belongs elsewhere: the rest of a
line (`lines`).
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from assignors.problem import InvalidProblemError, Problem
from fairlead.common.json_lines import an_object, brief, check_keys
from fairlead.domain.analysis.capacities import LARGEST_RATE, Capacity
from fairlead.domain.analysis.costs import CostRows, Costs
from fairlead.domain.analysis.rules import MOST_PLANS
from fairlead.domain.analysis.sample_series import SampleSeries

_FORMAT: Final = 2
_CAPACITY_KEYS: Final = frozenset({"records_per_s", "measured", "at"})
#: Maximum number of characters of a memory: `_LENGTH`, plus `_BY_PARTITION` for each partition and
#: `_BY_MEMBER` for each member.
_LENGTH: Final = 4096
_BY_PARTITION: Final = 100
_BY_MEMBER: Final = 500
#: A memory has the end offsets of at most this many topics, to detect that it is another group's.
_TOPICS: Final = 50


def written(
    capacities: Mapping[str, Capacity],
    costs: CostRows,
    series: SampleSeries,
    problem: Problem,
    plans: Sequence[float] = (),
) -> dict[str, Any]:
    """Return the memory: members' capacities, costs, and the times at which plans took effect.

    The size is limited. Capacities of present members are added first, then those of absent members
    (always the newest first), and then costs.
    """
    memory: dict[str, Any] = {
        "format": _FORMAT,
        "sample": _last_sample(series, problem),
        "members": {},
    }
    memory["plans"] = list(plans[-MOST_PLANS:])
    room = _LENGTH + _BY_PARTITION * problem.partition_total + _BY_MEMBER * len(problem.members)
    room -= len(json.dumps(memory))
    there = capacities.keys() & set(problem.members)
    for names in (there, capacities.keys() - there):
        for name in sorted(names, key=lambda name: (-capacities[name].at, name)):
            row = as_row(capacities[name])
            room -= len(json.dumps({name: row}))
            if room < 0:
                return memory
            memory["members"][name] = row
    for topic, rows in costs.items():
        room -= len(json.dumps({"costs": {topic: rows}}))
        if room >= 0:
            memory.setdefault("costs", {})[topic] = rows
    return memory


def recalled(
    memory: Any, series: SampleSeries, problem: Problem
) -> tuple[dict[str, Capacity], tuple[float, ...], CostRows]:
    """Validate a memory, and return its capacities, ascending times of plans, and costs.

    Raises
    ------
    InvalidProblemError
        The memory is not valid, or is another group's.
    """
    try:
        if memory["format"] != _FORMAT:
            raise InvalidProblemError("memory.format: this format is not supported")
        known = capacities_of(memory["members"], series)
        foreign = known and known.keys().isdisjoint(series.members)
        costs = memory.get("costs", {})
        Costs.of_rows(costs, problem, series.now)
        plans = tuple(sorted(min(float(at), series.now) for at in memory.get("plans", ())))
        if len(plans) > MOST_PLANS or not np.isfinite(plans).all():
            raise InvalidProblemError("memory.plans: too many times, or one is not finite")
        if foreign or not _matches(memory.get("sample"), series, problem):
            raise InvalidProblemError("memory: is that of another group")
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise InvalidProblemError("memory: is inconsistent") from error
    return known, plans, costs


def capacities_of(by_name: Any, series: SampleSeries) -> dict[str, Capacity]:
    """Read capacities. If a time is later than the last sample, use the first sample's time.

    Raises
    ------
    InvalidProblemError
        The message names the invalid value.
    """
    known = {}
    for name, value in ({} if by_name is None else an_object(by_name, "capacities")).items():
        where = f"capacities.{name}"
        check_keys(
            an_object(value, where), _CAPACITY_KEYS, required=_CAPACITY_KEYS, where=f"{where}."
        )
        speed, measured = value["records_per_s"], value["measured"]
        if type(speed) not in (int, float) or not 0 <= speed <= LARGEST_RATE:
            raise InvalidProblemError(f"{where}.records_per_s: {brief(speed)} is not a rate")
        if not isinstance(measured, bool):
            raise InvalidProblemError(f"{where}.measured: {brief(measured)} is not true or false")
        at = moment(value["at"], f"{where}.at")
        at = at if at <= series.now else float(series.at[0])
        known[name] = Capacity(float(speed), measured, at)
    return known


def as_row(capacity: Capacity) -> dict[str, Any]:
    """Return a capacity as JSON, with its time in ISO 8601."""
    at = datetime.fromtimestamp(capacity.at, UTC).isoformat()
    return {"records_per_s": capacity.records_per_s, "measured": capacity.measured, "at": at}


def moment(text: Any, where: str) -> float:
    """Return a time as seconds since the epoch.

    Raises
    ------
    InvalidProblemError
        The text is not a time in ISO 8601 with a time zone.
    """
    try:
        # Refuse text that is not printable: `fromisoformat` accepts a NUL at the end.
        at = datetime.fromisoformat(text if str(text).isprintable() else "")
    except (TypeError, ValueError):
        raise InvalidProblemError(
            f"{where}: {brief(text)} is not a time such as 2026-03-02T00:00:00+00:00"
        ) from None
    if at.tzinfo is None:
        raise InvalidProblemError(
            f"{where}: {brief(text)} has no time zone: add one, such as +00:00"
        )
    return at.timestamp()


def _last_sample(series: SampleSeries, problem: Problem) -> dict[str, Any]:
    """Return the time of the last sample, and the sum of each topic's end offsets in it."""
    return {"at": series.now, "ends": _ends(series, len(series) - 1, problem)}


def _ends(series: SampleSeries, place: int, problem: Problem) -> dict[str, int]:
    ends = np.maximum(series.end[place], 0)
    first = problem.topic_offsets
    return {
        f"{zlib.crc32(topic.encode()):x}": int(ends[first[number] : first[number + 1]].sum())
        for number, topic in enumerate(problem.topics[:_TOPICS])
    }


def _matches(remembered: Any, series: SampleSeries, problem: Problem) -> bool:
    """Return false if a sample of the remembered time has other end offsets than the memory."""
    if remembered is None:
        return True
    at, before = float(remembered["at"]), dict(remembered["ends"])
    same = np.flatnonzero(series.at == at)
    if not same.size:
        return True
    ends = _ends(series, int(same[0]), problem)
    return all(before[topic] == end for topic, end in ends.items() if topic in before)
