"""Compare the time of two pieces of work: no test knows how fast a machine is.

Belongs here: the comparison. Does not: how fast something is (`benchmarks`).
"""

import math
import time
from collections.abc import Callable
from typing import Final

#: How often both are run at most.
TURNS: Final = 12


def costs_at_most(
    times: float,
    work: Callable[[], object],
    reference: Callable[[], object],
    *,
    clock: Callable[[], float] = time.thread_time,
) -> None:
    """Fail unless work takes at most so many times as long as the reference.

    Both run in turns, until a turn shows that it holds. The fastest run of each counts, so that
    neither a busy machine nor a processor that changes its speed makes a test fail.

    Parameters
    ----------
    times
        Far above what is measured, and far below what the mistake would take: of the same work on
        ten times as much, 30 lets linear code pass, not quadratic code.
    work, reference
        Take at least a few milliseconds.
    clock
        By default, processor time of this thread; `time.perf_counter` for work of others.

    Raises
    ------
    AssertionError
        No turn has shown it.
    """
    fastest = [math.inf, math.inf]
    for _ in range(TURNS):
        for number, run in enumerate((work, reference)):
            began = clock()
            run()
            fastest[number] = min(fastest[number], clock() - began)
        ratio = fastest[0] / fastest[1]
        if ratio <= times:
            return
    raise AssertionError(f"takes {ratio:.1f} times as long as the reference: at most {times:g}")
