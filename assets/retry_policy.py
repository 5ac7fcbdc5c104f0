"""Retries of failed steps.

Belongs here: the delay between attempts, and errors that another attempt cannot fix. Belongs
elsewhere: sending records again (`fairlead.workflows.reconciling`). If only some groups of a run
have errors, the step succeeds, and is not retried.
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

#: Retries after temporary errors, such as a broker or database that does not answer for a moment.
RETRIES: Final = dg.RetryPolicy(
    max_retries=3, delay=2, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)
#: Errors that a retry cannot fix: a person must first change a clock, a setting, the schema, a
#: permission or the request.
CANNOT_HEAL: Final = (
    ClocksApartError,
    ConfigurationError,
    GroupError,
    InvalidPlanError,
    PlanStateError,
)


@contextmanager
def failing_at_once() -> Iterator[None]:
    """Turn errors that a retry cannot fix into failures without a retry.

    A context manager, also usable as a decorator.

    Raises
    ------
    Failure
        The code raised an error of `CANNOT_HEAL`. The failure has the error's message.
    """
    try:
        yield
    except CANNOT_HEAL as error:
        raise dg.Failure(str(error), allow_retries=False) from error
