"""Signals that end a command: SIGINT (Ctrl-C) and SIGTERM."""

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

#: Exception that ends a command -> the signal that raises it.
_SIGNALS: Final = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}
#: Seconds until a signal is sent again; by then the callback that ignored it has ended.
_AGAIN_S: Final = 0.1


def raise_on_signals() -> None:
    """Let both signals raise an exception, so that a command stops all that it has started.

    For SIGINT this is Python's default, but shells start background jobs with SIGINT ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.unraisablehook = _send_again


def _send_again(ignored: "UnraisableHookArgs") -> None:
    """Send a signal again if Python ignored its exception.

    Garbage collection runs finalizers and callbacks of weak references. If a signal arrives
    meanwhile, its exception is raised in such a function, and Python ignores exceptions there.
    """
    number = _SIGNALS.get(ignored.exc_type)
    if number is None:
        sys.__unraisablehook__(ignored)
        return
    later = threading.Timer(_AGAIN_S, os.kill, [os.getpid(), number])
    later.daemon = True
    with suppress(RuntimeError):  # the program is ending, so no thread can start
        later.start()
