"""Skip ticks of sensors and schedules while the database or Kafka does not answer.

A tick is one call of a sensor or schedule by Dagster. A skipped tick shows a reason, no traceback.

Belongs here: which errors skip a tick, and the reason that Dagster shows. Belongs elsewhere: what
a tick does.
"""

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

import dagster as dg

from fairlead.errors import KafkaUnavailableError, StoreUnavailableError

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")

#: Errors that need no action: they end once the service answers again.
AWAY: Final = (KafkaUnavailableError, StoreUnavailableError)


def skip_while_away(tick: Callable[Asked, Answer]) -> Callable[Asked, Answer | dg.SkipReason]:
    """Wrap `tick`: if a service does not answer, return a skip reason instead of raising the error.

    Otherwise Dagster's daemon would log a traceback of a hundred lines or more at each tick of each
    sensor. `/ready` and `fairlead doctor` report services that do not answer.
    """

    @wraps(tick)
    def skipped_while_away(*args: Asked.args, **kwargs: Asked.kwargs) -> Answer | dg.SkipReason:
        try:
            return tick(*args, **kwargs)
        except AWAY as error:
            return dg.SkipReason(f"{error}. The next tick tries again.")

    return skipped_while_away
