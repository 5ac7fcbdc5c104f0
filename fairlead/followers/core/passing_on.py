"""Recognise applications that only pass records on to threads or tasks.

Belongs here: the decision, from totals of the meter. Belongs elsewhere: timing (`meter`).

Such an application takes the same short time for nearly every record. The mean time per record
cannot show this, because on a busy machine a few long interruptions by other processes multiply the
mean. So this module counts quick calls instead.

Two other kinds of applications also take little time for most records: some skip most records,
others insert rows after, say, every 500th record. But those applications spend a large share of
their time on the few slow records.
"""

from typing import Final, NamedTuple

#: Seconds per record. Passing a record on takes less time, unless another process interrupts it: on
#: a slow machine about 0.05 ms for a queue or a task, 0.09 ms for an executor.
QUICK_S: Final = 2.5e-4
#: Ratio of the time in the application to the time of waiting for records. If most calls are quick
#: and the ratio is lower, other threads or tasks probably process the records.
_WORKS: Final = 0.2
#: Seconds. Length of a period; each decision uses the last one or two periods. Periods are long,
#: because a full queue can block an application for hours, and a blocked application seems to
#: process records.
_PERIOD_S: Final = 86_400.0
#: Minimum number of calls in a period. A period with fewer calls becomes longer.
_CALLS: Final = 20


class Totals(NamedTuple):
    """Totals of a meter since the consumer was created.

    `waiting_s` is the time of waiting for records, `handler_s` the time in the application. `calls`
    is the number of calls that returned records. `quick` is the number of those calls after which
    the application needed less than `QUICK_S` per record.
    """

    elapsed_s: float
    waiting_s: float
    handler_s: float
    calls: int
    quick: int


class PassingOn:
    """Detects whether an application only passed records on, in the last one or two periods."""

    def __init__(self) -> None:
        self.detected = False
        self._since = self._period = Totals(0.0, 0.0, 0.0, 0, 0)

    def note(self, now: Totals) -> None:
        """Update `detected` from new totals."""
        period = self._period
        if now.elapsed_s - period.elapsed_s > _PERIOD_S and now.calls - period.calls >= _CALLS:
            self._since, self._period = period, now
        _, waiting_s, handler_s, calls, quick = (
            after - before for after, before in zip(now, self._since, strict=True)
        )
        self.detected = 2 * quick > calls and handler_s < _WORKS * waiting_s
