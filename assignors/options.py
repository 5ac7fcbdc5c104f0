"""Check the values of assignors' options.

Belongs here: types and ranges, with messages that name the option. Belongs elsewhere: which options
an assignor has (its signature states them).
"""

import sys
from typing import Any

from assignors.problem import InvalidProblemError


def boolean(name: str, value: Any) -> None:
    """Raise an error unless the value is True or False."""
    if not isinstance(value, bool):
        raise InvalidProblemError(f"options.{name}: {value!r} is neither true nor false")


def count_or_none(name: str, value: Any) -> None:
    """Raise an error unless the value is None (no limit) or a non-negative integer."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidProblemError(f"options.{name}: {value!r} is not a count (0, 1, ... or null)")


def non_negative(name: str, value: Any) -> None:
    """Raise an error unless the value is a finite number, 0 or more."""
    number = not isinstance(value, bool) and isinstance(value, int | float)
    if not number or not 0 <= value <= sys.float_info.max:
        raise InvalidProblemError(f"options.{name}: {value!r} is not a number of at least 0")
