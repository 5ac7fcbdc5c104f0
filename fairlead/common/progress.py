"""Progress of long operations, reported in a line every few seconds.

Belongs here: when to report. Belongs elsewhere: writing the lines.
"""

import time
from collections.abc import Callable
from typing import Final

ReportProgress = Callable[[str], None]
#: Called with the numbers of finished and of all items.
ReportCount = Callable[[int, int], None]

#: Minimum seconds between two lines of progress.
EVERY_S: Final = 5.0


def phase(report: ReportProgress, text: str) -> ReportCount:
    """Return a progress reporter for a phase: it reports every few seconds, and once at the end.

    Parameters
    ----------
    report
        Called with a line for the user.
    text
        The line, with two placeholders for numbers.

    Examples
    --------
    >>> count = phase(print, "Described {:,} of {:,} groups")
    >>> count(200, 1_000)
    >>> count(1_000, 1_000)
    Described 1,000 of 1,000 groups
    >>> count(1_000, 1_000)
    """
    reported_at = time.monotonic()
    ended = False

    def count(done: int, total: int) -> None:
        nonlocal reported_at, ended
        now = time.monotonic()
        if ended or (done < total and now - reported_at < EVERY_S):
            return
        reported_at, ended = now, done >= total
        report(text.format(done, total))

    return count
