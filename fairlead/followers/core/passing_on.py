"""Recognise applications that only pass records on to threads or tasks.

Belongs here: the decision, from totals of the meter. Does not: timing (`meter`).

Such an application takes the same short time for nearly every record. The mean cannot show this:
on a busy machine, a few long interruptions by other processes make it many times the usual time.
So this module counts quick calls instead.

Two other kinds of applications are quick with most records: some skip most records, some insert
rows after every 500th record. They spend a large share of the time with the few other records.
"""

from typing import Final, NamedTuple

#: Seconds per record. Without an interruption, passing a record on takes less: on a slow machine
#: about 0.05 ms for a queue or a task, 0.09 ms for an executor.
QUICK_S: Final = 2.5e-4
#: Minimum ratio of time in the application to waiting, if most calls are quick; with less, the
#: application may work while the consumer waits.
_WORKS: Final = 0.2
#: Seconds. Minimum period for a decision. A full queue can block an application that passes records
#: on for hours, and it then seems to process them.
_PERIOD_S: Final = 86_400.0
#: Minimum number of calls in this period, so that applications with few records are recognised too.
_CALLS: Final = 20


class Totals(NamedTuple):
    """Totals of a meter since the consumer was created.

    Seconds; of these, seconds of waiting for records and in the application; calls that returned
    records; calls whose records took less than `QUICK_S` each.
    """

    elapsed_s: float
    waiting_s: float
    handler_s: float
    calls: int
    quick: int


class PassingOn:
    """Whether an application only passed records on, in the last one or two periods."""

    def __init__(self) -> None:
        self.detected = False
        self._since = self._period = Totals(0.0, 0.0, 0.0, 0, 0)

    def note(self, now: Totals) -> None:
        """Update `detected`."""
        period = self._period
        if now.elapsed_s - period.elapsed_s > _PERIOD_S and now.calls - period.calls >= _CALLS:
            self._since, self._period = period, now
        _, waiting_s, handler_s, calls, quick = (
            after - before for after, before in zip(now, self._since, strict=True)
        )
        self.detected = 2 * quick > calls and handler_s < _WORKS * waiting_s
