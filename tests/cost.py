"""Comparison of the time of two pieces of work, on machines of any speed."""

import math
import time
from collections.abc import Callable
from typing import Final

#: Maximum number of runs of each.
TURNS: Final = 12


def costs_at_most(
    times: float,
    work: Callable[[], object],
    reference: Callable[[], object],
    *,
    clock: Callable[[], float] = time.thread_time,
) -> None:
    """Fail unless work takes at most `times` as long as the reference.

    Both run in turns until their fastest runs have this ratio, so that neither a busy machine nor a
    processor that changes its speed makes a test fail.

    Parameters
    ----------
    times
        Far above the measured ratio, and far below that of a mistake: for ten times the work, 30
        accepts linear code and refuses quadratic code.
    work, reference
        The two pieces of work, which must take at least a few milliseconds.
    clock
        By default, processor time of this thread; `time.perf_counter` for other processes' work.

    Raises
    ------
    AssertionError
        The ratio is larger in all runs.
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
