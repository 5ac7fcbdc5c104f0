"""Child processes that react to SIGINT (Ctrl-C), even if the tests run in the background.

Belongs here: the signal disposition that children inherit. Belongs elsewhere: sending SIGINT (the
tests).
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def accepting_ctrl_c() -> Iterator[None]:
    """Let SIGINT end child processes that are started within the block.

    If a script starts the tests in the background (with `&`), as CI systems do, child processes
    ignore SIGINT. To prevent this, the block gives this process a handler for SIGINT: children of a
    process with a handler do not ignore the signal.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
