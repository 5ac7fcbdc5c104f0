"""`fairlead assign` and `fairlead partition`: JSON lines in, JSON lines out.

Belongs here: the line protocol, and what a line may say. Does not: the rules themselves
(`assignors`). Neither command needs Kafka, Postgres or Spark, and neither imports them.
"""

import base64
import binascii
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Final, NoReturn

import typer

from assignors.metrics import measure
from assignors.partitioner import partitions_of
from assignors.problem import InvalidProblemError, Member, Problem
from assignors.registry import assign as run_assignor

_PROBLEM_KEYS: Final = frozenset(
    {"assignor", "topics", "members", "lags", "arrival_rates", "replica_racks", "options"}
)
_MEMBER_KEYS: Final = frozenset(
    {"topics", "owned", "generation", "instance_id", "rack", "capacity"}
)
_RECORD_KEYS: Final = frozenset({"key", "key_encoding", "partitions"})
_LARGEST_COUNT: Final = 2**31 - 1


def assign() -> None:
    """Answer assignment problems, one JSON object a line, each with one line.

    {"assignor": "sticky", "topics": {"t0": 3}, "members": {"C0": {"topics": ["t0"]}},
    "lags": {"t0": [5, 3, 2]}} -> {"assignment": ..., "metrics": ...} or {"error": ...}.
    Exits with 1 when any answer is an error.
    """
    _serve(answer_problem)


def partition() -> None:
    """Say which partition the producer's default partitioner gives a key, line by line.

    {"key": "k", "key_encoding": "utf8", "partitions": 12} -> {"partition": 3} or {"error": ...};
    key_encoding is utf8 or base64. Exits with 1 when any answer is an error.
    """
    _serve(answer_record)


def answer_problem(problem: dict[str, Any]) -> dict[str, Any]:
    """Answer one assignment problem.

    Raises
    ------
    InvalidProblemError
        The message says which part of the problem is wrong.

    Examples
    --------
    >>> answer_problem({"assignor": "range", "topics": {"t": 1}, "members": {}})["assignment"]
    {}
    """
    _check_keys(problem, _PROBLEM_KEYS, required=("assignor", "topics", "members"), where="")
    assignor, options = problem["assignor"], problem.get("options")
    if not isinstance(assignor, str):
        raise InvalidProblemError(f"assignor: {_json(assignor)} is not a name")
    if options is not None and not isinstance(options, dict):
        raise InvalidProblemError(f"options: {_json(options)} is not an object")
    built = Problem.of(
        problem["topics"],
        _members(problem["members"]),
        problem.get("lags"),
        arrival_rates=problem.get("arrival_rates"),
        replica_racks=problem.get("replica_racks"),
    )
    assignment = run_assignor(assignor, built, **(options or {}))
    return {
        "assignment": assignment.by_member(),
        "metrics": measure(built, assignment).as_dict(),
    }


def answer_record(record: dict[str, Any]) -> dict[str, Any]:
    """Answer which partition a record's key lands on.

    Raises
    ------
    InvalidProblemError
        The message says which part of the record is wrong.

    Examples
    --------
    >>> answer_record({"key": "b3JkZXJz", "key_encoding": "base64", "partitions": 12})
    {'partition': 0}
    """
    _check_keys(record, _RECORD_KEYS, required=("key", "partitions"), where="")
    count = record["partitions"]
    if type(count) is not int or not 1 <= count <= _LARGEST_COUNT:
        raise InvalidProblemError(f"partitions: {_json(count)} is not a number of partitions")
    key = _key(record["key"], record.get("key_encoding", "utf8"))
    return {"partition": int(partitions_of([key], count)[0])}


def answer_lines(
    lines: Iterable[bytes], answer: Callable[[dict[str, Any]], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Answer each line as it comes, errors in their place; a blank line is an error too.

    Examples
    --------
    >>> for line in answer_lines([b'{"key": "a"}', b"", b"{]"], answer_record):
    ...     print(line["error"])
    partitions: is missing
    not JSON: Expecting value: line 1 column 1 (char 0)
    not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
    """
    for line in lines:
        yield _answer(line, answer)


def _serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    if sys.stdin is None:  # closed by whoever started us
        raise typer.Exit
    source: BinaryIO = sys.stdin.buffer
    failed = False
    for result in answer_lines(source, answer):
        failed |= "error" in result
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    raise typer.Exit(code=1 if failed else 0)


def _answer(line: bytes, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    try:
        request = _parse(line)
        return answer(request)
    except InvalidProblemError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "the problem does not fit into memory"}


def _parse(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(
            line.decode("utf-8-sig"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
        )
    except InvalidProblemError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidProblemError(f"not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InvalidProblemError(f"{_json(request)} is not an object")
    return request


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse what `json` would silently resolve: the same member or topic given twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidProblemError(f"the name {_json(twice)} stands twice in one object")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidProblemError(f"not JSON: {name} is no JSON number")


def _check_keys(
    given: dict[str, Any], known: frozenset[str], *, required: Iterable[str], where: str
) -> None:
    for name in given:
        if name not in known:
            raise InvalidProblemError(
                f"{where}{name}: unknown; there are {', '.join(sorted(known))}"
            )
    for name in required:
        if name not in given:
            raise InvalidProblemError(f"{where}{name}: is missing")


def _members(members: Any) -> dict[str, Member]:
    if not isinstance(members, dict):
        raise InvalidProblemError(f"members: {_json(members)} is not an object")
    return {name: _member(name, value) for name, value in members.items()}


def _member(name: str, value: Any) -> Member:
    if not isinstance(value, dict):
        raise InvalidProblemError(f"members.{name}: {_json(value)} is not an object")
    _check_keys(value, _MEMBER_KEYS, required=("topics",), where=f"members.{name}.")
    # A null says the same as leaving the field out, topics apart.
    known = {field: item for field, item in value.items() if item is not None or field == "topics"}
    return Member(**known)


def _key(key: Any, encoding: Any) -> bytes:
    if not isinstance(key, str):
        raise InvalidProblemError(f"key: {_json(key)} is not a text")
    try:
        if encoding == "utf8":
            return key.encode()
        if encoding == "base64":
            return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidProblemError(f"key: is not {encoding}: {error}") from error
    raise InvalidProblemError(f"key_encoding: {_json(encoding)} is neither utf8 nor base64")


def _json(value: Any) -> str:
    text = json.dumps(value)
    shown = 60
    return text if len(text) <= shown else text[:shown] + "..."
