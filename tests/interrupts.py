"""Processes that accept Ctrl-C, however the tests were started.

Belongs here: the disposition of SIGINT that children inherit. Does not: sending it (the tests).
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def accepting_ctrl_c() -> Iterator[None]:
    """Let processes started within the block end by SIGINT, as from a terminal.

    A background command of a script (with `&`), as in CI systems, ignores SIGINT, and so do its
    children. If a process has a handler for a signal, its children have the default instead.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
