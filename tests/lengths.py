"""Short and long forms of tests: `make test` runs the short ones, `make test-long` the long ones.

Belongs here: the choice between them. Does not: how long either is, which its test says.
"""

import os
from typing import Final, TypeVar

Form = TypeVar("Form")

#: Read at import: the tests themselves see none of the developer's variables.
LONG: Final = bool(os.environ.get("FAIRLEAD_TEST_LONG"))


def form(*, short: Form, long: Form) -> Form:
    """Return what a test takes of its two forms."""
    return long if LONG else short
