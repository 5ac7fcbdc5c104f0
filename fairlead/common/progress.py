"""How far something is, for people who wait for it: a line every few seconds.

Belongs here: when to say it, and asking Spark. Does not: where it is said.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # whoever has a session has imported Spark; the others need not
    from pyspark.sql import SparkSession

ReportProgress = Callable[[str], None]
ReportCount = Callable[[int, int], None]
"""Called with how many are done, and of how many."""

EVERY_S: Final = 5.0


def phase(tell: ReportProgress, text: str) -> ReportCount:
    """Return what tells of one phase: its end once, and every few seconds before it.

    Parameters
    ----------
    tell
        Called with a line for the user.
    text
        The line, with two places for numbers.

    Examples
    --------
    >>> told = phase(print, "Described {:,} of {:,} groups")
    >>> told(200, 1_000)
    >>> told(1_000, 1_000)
    Described 1,000 of 1,000 groups
    >>> told(1_000, 1_000)
    """
    told_at = time.monotonic()
    ended = False

    def told(done: int, total: int) -> None:
        nonlocal told_at, ended
        now = time.monotonic()
        if ended or (done < total and now - told_at < EVERY_S):
            return
        told_at, ended = now, done >= total
        tell(text.format(done, total))

    return told


@contextmanager
def spark_works(
    session: "SparkSession", what: str, tell: ReportProgress, *, every_s: float = EVERY_S
) -> Iterator[None]:
    """Say that something begins, and how far it is every few seconds while the block lasts.

    Parameters
    ----------
    session
        A classic one is asked; of a Spark Connect server's, the answers bring it along.
    what
        What begins, such as "Analysing 3 groups".
    tell
        Takes a line for the log; called from another thread while Spark works.
    every_s
        Seconds between two lines.
    """
    tell(what)
    newest: tuple[int, int] | None = None
    connect: Any = session if type(session).__module__.startswith("pyspark.sql.connect") else None

    def handle(stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:  # noqa: ARG001, FBT001 - PySpark's signature
        nonlocal newest
        running = [] if done else list(stages or ())
        finished = sum(stage.num_completed_tasks for stage in running)
        newest = (finished, sum(stage.num_tasks for stage in running)) if running else None

    def look() -> tuple[int, int] | None:
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
            if (found := look()) is not None:
                tell(f"{what}: {found[0]:,} of {found[1]:,} tasks done")

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
