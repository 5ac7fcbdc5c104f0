"""Messages for invalid values.

Belongs here: replacements for messages of pydantic that mention Python's types. Belongs elsewhere:
naming the location of the value. Messages of Fairlead's own validators are not replaced.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from fairlead.common.nearest import known_keys, no_such

_DURATION: Final = 'not a duration: write it as in ISO 8601, "PT1H", or in seconds'
_LIST: Final = 'must be a list, ["..."]'
_TABLE: Final = "must be a table of keys and values"
_WHAT: Final = {
    "time_delta_type": _DURATION,
    "time_delta_parsing": _DURATION,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "dict_type": _TABLE,
    "model_type": _TABLE,
    "missing": "is missing",
    "string_pattern_mismatch": "has characters that are not possible here",
}


def what_is_wrong(problem: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return the message for an invalid value.

    Parameters
    ----------
    problem
        One of the `errors()` of a pydantic `ValidationError` of the model.

    Examples
    --------
    >>> what_is_wrong({"type": "missing", "msg": "Field required"}, BaseModel)
    'is missing'
    >>> what_is_wrong({"type": "int_type", "msg": "Input should be a valid integer"}, BaseModel)
    'Input should be a valid integer'
    """
    kind = problem["type"]
    if kind == "extra_forbidden":
        *above, key = problem["loc"]
        return no_such("key", str(key), known_keys(model, above))
    if kind == "string_pattern_mismatch" and "https" in problem["ctx"]["pattern"]:
        return "must be a URL that begins with https:// or http://"
    return _WHAT.get(kind, str(problem["msg"]).removeprefix("Value error, "))
