"""Short and long forms of tests: `make test` runs the short ones, `make test-long` the long ones.

Belongs here: the choice between them. Does not: the length of either, which each test sets.
"""

import os
from typing import Final, TypeVar

Form = TypeVar("Form")

#: Read at import, because fixtures hide the developer's variables from tests.
LONG: Final = bool(os.environ.get("FAIRLEAD_TEST_LONG"))


def form(*, short: Form, long: Form) -> Form:
    """Return the short or the long form of a test's parameter."""
    return long if LONG else short
