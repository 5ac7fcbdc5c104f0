"""Child processes that react to SIGINT (Ctrl-C), even if the tests run in the background.

Belongs here: the signal disposition that children inherit. Belongs elsewhere: sending SIGINT (the
tests).
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def accepting_ctrl_c() -> Iterator[None]:
    """Let SIGINT end processes that are started within the block, as if from a terminal.

    If a script starts a command in the background (with `&`), as CI systems do, the command and its
    children ignore SIGINT. If a parent has a handler for SIGINT, its children do not ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
