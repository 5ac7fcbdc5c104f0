"""Messages for invalid values.

Belongs here: a sentence for each kind of error of a pydantic model. Does not: the place of the
value, nor errors of Fairlead's validators, whose text stays.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from fairlead.common.nearest import known_keys, no_such

_DURATION: Final = 'not a duration: write it as in ISO 8601, "PT1H", or in seconds'
_WHAT: Final = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "decimal": "must be a number",
    "bool": "must be true or false",
    "string": "must be a text",
    "date": "must be a date",
    "datetime": "must be a time, such as 2026-01-05T09:00:00+00:00",
    "time_delta": _DURATION,
    "list": 'must be a list, ["..."]',
    "tuple": 'must be a list, ["..."]',
    "set": 'must be a list, ["..."]',
    "frozen_set": 'must be a list, ["..."]',
    "dict": "must be a table of keys and values",
    "model": "must be a table of keys and values",
    "url": "must be a URL",
    "path": "must be a path",
    "missing": "is missing",
    "string_pattern_mismatch": "has characters that are not possible here",
}
_BOUNDS: Final = {
    "greater_than_equal": ("ge", "must be at least {}"),
    "greater_than": ("gt", "must be above {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "less_than": ("lt", "must be below {}"),
    "too_short": ("min_length", "must have at least {} entries"),
    "too_long": ("max_length", "must have at most {} entries"),
    "string_too_short": ("min_length", "must have at least {} characters"),
    "string_too_long": ("max_length", "must have at most {} characters"),
    "literal_error": ("expected", "must be {}"),
    "enum": ("expected", "must be {}"),
}


def what_is_wrong(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return the message for an invalid value.

    Parameters
    ----------
    problem
        One of the `errors()` of a pydantic `ValidationError` of the model.

    Examples
    --------
    >>> what_is_wrong({"type": "int_parsing", "msg": "..."}, BaseModel)
    'must be a whole number'
    >>> what_is_wrong({"type": "greater_than_equal", "msg": "...", "ctx": {"ge": 0}}, BaseModel)
    'must be at least 0'
    """
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        *above, key = problem["loc"]
        return no_such("key", str(key), known_keys(model, above))
    if kind == "value_error":  # a validator of Fairlead
        return str(problem["msg"]).removeprefix("Value error, ")
    if kind == "string_pattern_mismatch" and "https" in context.get("pattern", ""):
        return "must be a URL that begins with https:// or http://"
    if kind in _BOUNDS:
        key, sentence = _BOUNDS[kind]
        return sentence.format(context.get(key))
    matching = (name for name in _WHAT if kind == name or kind.startswith(f"{name}_"))
    return _WHAT.get(max(matching, key=len, default=""), "this value is not possible here")
