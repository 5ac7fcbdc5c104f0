"""Answers of `fairlead assign` (for a problem) and `fairlead partition` (for a record's key).

Belongs here: the content of a line. Belongs elsewhere: the line protocol
(`fairlead.common.json_lines`), the rules themselves (`assignors`). Imports neither Kafka, Postgres
nor Spark.
"""

import base64
import binascii
from typing import Any, Final

from assignors.metrics import measure
from assignors.partitioner import partition_of
from assignors.problem import InvalidProblemError, Member, Problem
from assignors.registry import LAG_BLIND, check_options
from assignors.registry import assign as run_assignor
from fairlead.common.json_lines import an_object, brief, check_keys

_PROBLEM_KEYS: Final = frozenset(
    {"assignor", "topics", "members", "lags", "arrival_rates", "replica_racks", "options"}
)
_MEMBER_KEYS: Final = frozenset(
    {"topics", "owned", "generation", "instance_id", "rack", "capacity"}
)
_RECORD_KEYS: Final = frozenset({"key", "key_encoding", "partitions"})
_LARGEST_COUNT: Final = 2**31 - 1


def answer_problem(problem: dict[str, Any]) -> dict[str, Any]:
    """Answer one assignment problem.

    Raises
    ------
    InvalidProblemError
        A part of the problem is wrong; the message names it.

    Examples
    --------
    >>> answer_problem({"assignor": "range", "topics": {"t": 1}, "members": {}})["assignment"]
    {}
    """
    check_keys(problem, _PROBLEM_KEYS, required=("assignor", "topics", "members"), where="")
    assignor, options = problem["assignor"], problem.get("options")
    if not isinstance(assignor, str):
        raise InvalidProblemError(f"assignor: {brief(assignor)} is not a name")
    if options is not None and not isinstance(options, dict):
        raise InvalidProblemError(f"options: {brief(options)} is not an object")
    built = Problem.of(
        problem["topics"],
        _members(problem["members"]),
        problem.get("lags"),
        arrival_rates=problem.get("arrival_rates"),
        replica_racks=problem.get("replica_racks"),
    )
    check_options(assignor, options or {})
    if problem.get("lags") is None and assignor not in LAG_BLIND and built.assignable.any():
        raise InvalidProblemError(f"lags: is missing; {assignor} needs it")
    assignment = run_assignor(assignor, built, **(options or {}))
    return {
        "assignment": assignment.by_member(),
        "metrics": measure(built, assignment).as_dict(),
    }


def answer_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return the partition of a record's key.

    Raises
    ------
    InvalidProblemError
        A part of the record is wrong; the message names it.

    Examples
    --------
    >>> answer_record({"key": "b3JkZXJz", "key_encoding": "base64", "partitions": 12})
    {'partition': 0}
    """
    check_keys(record, _RECORD_KEYS, required=("key", "partitions"), where="")
    count = record["partitions"]
    if type(count) is not int or not 1 <= count <= _LARGEST_COUNT:
        raise InvalidProblemError(f"partitions: {brief(count)} is not a number of partitions")
    key = _key(record["key"], record.get("key_encoding", "utf8"))
    return {"partition": partition_of(key, count)}


def _members(members: Any) -> dict[str, Member]:
    values = an_object(members, "members")
    return {name: _member(name, value) for name, value in values.items()}


def _member(name: str, value: Any) -> Member:
    an_object(value, f"members.{name}")
    check_keys(value, _MEMBER_KEYS, required=("topics",), where=f"members.{name}.")
    # Null means the same as a missing field, except for topics.
    known = {field: item for field, item in value.items() if item is not None or field == "topics"}
    return Member(**known)


def _key(key: Any, encoding: Any) -> bytes:
    if not isinstance(key, str):
        raise InvalidProblemError(f"key: {brief(key)} is not a text")
    try:
        if encoding == "utf8":
            return key.encode()
        if encoding == "base64":
            return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidProblemError(f"key: is not {encoding}: {error}") from error
    raise InvalidProblemError(f"key_encoding: {brief(encoding)} is neither utf8 nor base64")
