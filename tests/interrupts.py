"""Child processes that react to SIGINT (Ctrl-C), even if the tests run in the background.

Belongs here: the signal disposition that children inherit. Belongs elsewhere: sending SIGINT (the
tests).
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def accepting_ctrl_c() -> Iterator[None]:
    """Let processes that are started within the block end at SIGINT, as from a terminal.

    A command that a script starts in the background (with `&`), as CI systems do, ignores SIGINT,
    and its children inherit this. If the parent has a handler, children get the default instead.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
