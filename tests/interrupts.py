"""Processes that accept Ctrl-C, however the tests were started.

Belongs here: the disposition of SIGINT that children inherit. Does not: sending it (the tests).
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def accepting_ctrl_c() -> Iterator[None]:
    """Let processes that are started meanwhile end by SIGINT, as from a terminal.

    What a script puts in the background with `&`, as CI systems do, ignores SIGINT, and so does
    all that it starts. A signal that has a handler is back at its default in a child instead.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
