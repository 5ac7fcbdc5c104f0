"""Short and long forms of tests: `make test` runs the short forms, `make test-long` the long ones.

Belongs here: the choice of the form. Belongs elsewhere: the length of each form (the tests).
"""

import os
from typing import Final, TypeVar

Form = TypeVar("Form")

#: Whether tests use their long forms. Read at import, because a fixture later hides environment
#: variables from tests.
LONG: Final = bool(os.environ.get("FAIRLEAD_TEST_LONG"))


def form(*, short: Form, long: Form) -> Form:
    """Return the value for the form of this test run, for example a number of repetitions."""
    return long if LONG else short
