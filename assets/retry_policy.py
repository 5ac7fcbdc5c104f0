"""Which failures of a step Dagster tries again, how often, and which it does not.

Belongs here: how attempts are spaced, and which errors another attempt cannot mend. Does not: what
a step does about errors of single groups (`steps`), nor what is sent again (`reconciling`).
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

#: Brokers and databases that do not answer for a moment: asked again, less and less often.
RETRIES: Final = dg.RetryPolicy(
    max_retries=3, delay=2, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)
#: Somebody has to change something first: a clock, a setting, the schema, a right, the request.
CANNOT_HEAL: Final = (
    ClocksApartError,
    ConfigurationError,
    GroupError,
    InvalidPlanError,
    PlanStateError,
)


@contextmanager
def failing_at_once() -> Iterator[None]:
    """End a step without another attempt where none can help; for a `with` or as a decorator.

    Raises
    ------
    Failure
        In place of an error of `CANNOT_HEAL`, with its message.
    """
    try:
        yield
    except CANNOT_HEAL as error:
        raise dg.Failure(str(error), allow_retries=False) from error
