"""Answering questions in JSON: each line is a question, and gets an answer or an error.

Belongs here: the line protocol of `fairlead assign`, `partition` and `decide`. Belongs elsewhere:
the content of questions and answers.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from assignors.problem import InvalidProblemError
from assignors.problem_input import first_repeated

#: Maximum number of characters of an invalid value in a message.
_SHOWN = 60
#: Maximum number of characters of a message. Messages can be longer because names can be long.
_LONGEST_MESSAGE = 1000

#: Tokens of JSON (strings and punctuation), with which the end of a value in an object is found.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{},:]')

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def answer_lines(
    lines: Iterable[bytes], answer: Answer, *, spare: str = ""
) -> Iterator[dict[str, Any]]:
    """Answer each line before reading the next; invalid and blank lines get an error.

    Parameters
    ----------
    lines, answer
        The questions, and the function that answers a question.
    spare
        A key whose value is not essential. If a line is invalid, for example because it is nested
        too deeply, this value is replaced by an empty string and the line is parsed again.

    Examples
    --------
    >>> for line in answer_lines([b'{"a": 1}', b""], lambda request: request):
    ...     print(line)
    {'a': 1}
    {'error': 'not JSON: Expecting value: line 1 column 1 (char 0)'}
    """
    for line in lines:
        yield _answer(line, answer, spare)


def _answer(line: bytes, answer: Answer, spare: str) -> dict[str, Any]:
    try:
        try:
            request = _parse(line)
        except (InvalidProblemError, RecursionError):
            without = _without(line, spare.encode()) if spare else line
            if without == line:
                raise
            request = _parse(without)
        return answer(request)
    except InvalidProblemError as error:
        return _error(str(error))
    except MemoryError:
        return _error("the problem does not fit into memory")
    except RecursionError:
        return _error("is nested too deeply")
    except Exception as error:  # noqa: BLE001 - later lines must be answered, too
        return _error(f"a bug of Fairlead: {error!r}")


def _without(line: bytes, key: bytes) -> bytes:
    """In a line with a JSON object, replace the value of a key with an empty string."""
    depth, begin, after_key = 0, -1, False
    for token in _TOKEN.finditer(line):
        text = token.group()
        if begin >= 0 and depth == 1 and text in b",}":
            return line[:begin] + b'""' + line[token.start() :]
        if after_key and text == b":":
            begin = token.end()
        after_key = depth == 1 and begin < 0 and text == b'"' + key + b'"'
        depth += (text in b"[{") - (text in b"]}")
    return line


def _error(message: str) -> dict[str, Any]:
    if len(message) > _LONGEST_MESSAGE:
        # Cut the middle: long names are in the middle of a message, the reason is at the end.
        half = _LONGEST_MESSAGE // 2
        message = f"{message[:half]} ... {message[-half:]}"
    return {"error": message}


def _parse(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(
            line.decode("utf-8-sig").rstrip("\r\n"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
        )
    except InvalidProblemError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidProblemError(f"not JSON: {error}") from error
    if not isinstance(request, dict):
        raise InvalidProblemError(f"{brief(request)} is not an object")
    return request


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; raise an error if a name occurs twice.

    Without this check, `json` would silently use the last value of the name.
    """
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = first_repeated(name for name, _ in pairs)
        raise InvalidProblemError(f"the name {brief(twice)} occurs twice in one object")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidProblemError(f"not JSON: JSON has no number {name}")


def check_keys(
    given: dict[str, Any], known: frozenset[str], *, required: Iterable[str], where: str
) -> None:
    """Raise an error for unknown and for missing keys.

    Raises
    ------
    InvalidProblemError
        A key is unknown or missing; the message begins with `where` and the key.
    """
    for name in given:
        if name not in known:
            raise InvalidProblemError(
                f"{where}{name}: no such field; the fields are {', '.join(sorted(known))}"
            )
    for name in required:
        if name not in given:
            raise InvalidProblemError(f"{where}{name}: is missing")


def an_object(value: Any, where: str) -> dict[str, Any]:
    """Return a value if it is a JSON object.

    Raises
    ------
    InvalidProblemError
        The value is not an object; the message begins with `where`.
    """
    if not isinstance(value, dict):
        raise InvalidProblemError(f"{where}: {brief(value)} is not an object")
    return value


def brief(value: Any) -> str:
    """Return a value as JSON for an error message, shortened if it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
