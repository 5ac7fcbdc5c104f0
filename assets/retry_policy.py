"""Retries of failed steps.

Belongs here: the delay between attempts, and errors that another attempt cannot fix. Does not:
errors of single groups (`steps`), nor records that are sent again (`reconciling`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import dagster as dg

from fairlead.errors import (
    ClocksApartError,
    ConfigurationError,
    GroupError,
    InvalidPlanError,
    PlanStateError,
)

#: For brokers and databases that do not answer for a moment.
RETRIES: Final = dg.RetryPolicy(
    max_retries=3, delay=2, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)
#: Errors that need a change first: of a clock, a setting, the schema, a right, or the request.
CANNOT_HEAL: Final = (
    ClocksApartError,
    ConfigurationError,
    GroupError,
    InvalidPlanError,
    PlanStateError,
)


@contextmanager
def failing_at_once() -> Iterator[None]:
    """Fail at once on errors that no other attempt can fix; a context manager or decorator.

    Raises
    ------
    Failure
        The code raised an error of `CANNOT_HEAL`. The failure has its message, and is not retried.
    """
    try:
        yield
    except CANNOT_HEAL as error:
        raise dg.Failure(str(error), allow_retries=False) from error
