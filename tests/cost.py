"""Assert that one function takes at most N times as long as another, on machines of any speed."""

import math
import time
from collections.abc import Callable
from typing import Final

#: Maximum number of runs of each function.
TURNS: Final = 12


def costs_at_most(
    times: float,
    work: Callable[[], object],
    reference: Callable[[], object],
    *,
    clock: Callable[[], float] = time.thread_time,
) -> None:
    """Raise unless `work` takes at most `times` as long as `reference`.

    Both run alternately until the ratio of their fastest runs is small enough. Therefore, neither a
    busy machine nor a processor that changes its speed makes a test fail.

    Parameters
    ----------
    times
        Maximum ratio of the durations. Choose a number far above the ratio of correct code and far
        below the ratio of a mistake. Example: for ten times the input, 30 accepts linear code and
        rejects quadratic code.
    work, reference
        Functions, each of which must take at least a few milliseconds.
    clock
        By default, processor time of this thread. If other processes do the work, use
        `time.perf_counter`.

    Raises
    ------
    AssertionError
        The ratio is larger after all runs.
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
