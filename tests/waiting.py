"""Wait until something happens, on machines of any speed.

Belongs here: the time-out of all waits in tests. Belongs elsewhere: the conditions for which tests
wait.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Final, TypeVar

from fairlead.sandbox.processes import wait_until

Result = TypeVar("Result")

#: Seconds. Longest wait in a test, far more than the slowest machine needs: if something does not
#: happen within this time, tests assume that it never will.
PATIENCE_S: Final = 1800.0


def eventually(
    condition: Callable[[], object],
    what: str | Callable[[], object],
    *,
    within_s: float = PATIENCE_S,
) -> None:
    """Wait until a condition holds.

    Parameters
    ----------
    condition
        Function that is called until it returns a true value.
    what
        Description of the condition, or a function that returns the description after a time-out.
    within_s
        Time-out in seconds. Set it only if waiting for PATIENCE_S would hide the error.

    Raises
    ------
    AssertionError
        The condition did not hold in time.
    """
    if not wait_until(lambda: bool(condition()), timeout_s=within_s):
        raise AssertionError(f"not within {within_s:.0f} s: {what() if callable(what) else what}")


def returned(call: Callable[[], Result], *, within_s: float = PATIENCE_S) -> Result:
    """Call a function on a thread and return its result; fail if it takes too long."""
    result = Future[Result]()

    def run() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again below
            result.set_exception(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(within_s)
    assert not thread.is_alive(), f"{call} has not returned within {within_s:.0f} s"
    return result.result()
