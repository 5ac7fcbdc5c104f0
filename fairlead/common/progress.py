"""Progress of long operations, a line every few seconds.

Belongs here: when to report, and the progress of Spark. Does not: where lines are written.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # callers without a session do not need Spark
    from pyspark.sql import SparkSession

ReportProgress = Callable[[str], None]
ReportCount = Callable[[int, int], None]
"""Called with the numbers of finished and of all items."""

EVERY_S: Final = 5.0
"""Seconds between two lines."""


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


@contextmanager
def spark_works(
    session: "SparkSession", what: str, report: ReportProgress, *, every_s: float = EVERY_S
) -> Iterator[None]:
    """Report the start of an operation, and Spark's progress every few seconds during the block.

    Parameters
    ----------
    session
        A classic session, or one of a Spark Connect server, which reports progress itself.
    what
        The operation, such as "Analysing 3 groups".
    report
        Takes a line for the log; also called from another thread.
    every_s
        Seconds between two lines.
    """
    report(what)
    newest: tuple[int, int] | None = None
    connect: Any = session if type(session).__module__.startswith("pyspark.sql.connect") else None

    def handle(stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:  # noqa: ARG001, FBT001 - PySpark's signature
        nonlocal newest
        running = [] if done else list(stages or ())
        finished = sum(stage.num_completed_tasks for stage in running)
        newest = (finished, sum(stage.num_tasks for stage in running)) if running else None

    def current() -> tuple[int, int] | None:
        if connect is not None:
            return newest
        tracker = session.sparkContext.statusTracker()
        known = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        running = [stage for stage in known if stage is not None]
        finished = sum(stage.numCompletedTasks for stage in running)
        return (finished, sum(stage.numTasks for stage in running)) if running else None

    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every_s):
            if (counts := current()) is not None:
                report(f"{what}: {counts[0]:,} of {counts[1]:,} tasks done")

    if connect is not None:
        connect.registerProgressHandler(handle)
    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        if connect is not None:
            connect.removeProgressHandler(handle)
