"""What Spark is doing, in the log as it does it: tasks done, every few seconds.

Belongs here: asking a session, classic or Spark Connect, and saying it. Does not: what tasks do.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from pyspark.sql import SparkSession

EVERY_S: Final = 5.0

Tell = Callable[[str], None]
#: Tasks done, and tasks in all, of the stages that run now; None: nothing runs.
Done = tuple[int, int] | None


@contextmanager
def told(
    session: SparkSession, what: str, tell: Tell, *, every_s: float = EVERY_S
) -> Iterator[None]:
    """Say that something begins, and how far it is every few seconds while the block lasts.

    Parameters
    ----------
    what
        What begins, such as "Judging 3 groups".
    tell
        Takes a line for the log; called from another thread while Spark works.
    every_s
        Seconds between two lines.
    """
    tell(what)
    ended, newest = threading.Event(), Newest(session)

    def watch() -> None:
        while not ended.wait(every_s):
            if (found := newest.done()) is not None:
                tell(f"{what}: {found[0]:,} of {found[1]:,} tasks done")

    watcher = threading.Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        newest.close()


class Newest:
    """How far a session is now.

    Parameters
    ----------
    session
        A classic one is asked; of a Spark Connect server's, the answers bring it along.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._told: Done = None
        remote = type(session).__module__.startswith("pyspark.sql.connect")
        self._connect: Any = cast("Any", session) if remote else None
        if self._connect is not None:
            self._connect.registerProgressHandler(self._handle)

    def close(self) -> None:
        """Listen no more."""
        if self._connect is not None:
            self._connect.removeProgressHandler(self._handle)

    def done(self) -> Done:
        """Return tasks done and tasks in all."""
        if self._connect is not None:
            return self._told
        tracker = self._session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        running = [stage for stage in stages if stage is not None]
        if not running:
            return None
        return sum(one.numCompletedTasks for one in running), sum(one.numTasks for one in running)

    def _handle(self, stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:  # noqa: ARG002, FBT001 - PySpark's signature
        running = [] if done or not stages else list(stages)
        self._told = (
            (sum(one.num_completed_tasks for one in running), sum(one.num_tasks for one in running))
            if running
            else None
        )
