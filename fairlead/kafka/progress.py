"""How far a snapshot has come, for people who wait for it.

Belongs here: when to tell. Does not: where it is told.
"""

import time
from collections.abc import Callable
from typing import Final

Tell = Callable[[str], None]
Told = Callable[[int, int], None]
"""Called with how many are done, and of how many."""

EVERY_S: Final = 5.0


def phase(tell: Tell, text: str) -> Told:
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
