"""SIGINT and SIGTERM end a command, even at moments at which Python ignores exceptions."""

import signal
import sys
from typing import Final

import pytest

from tests.programs import ended

#: A program in which a signal arrives during the callback of a weak reference.
IGNORED: Final = """
import signal, sys, threading, weakref
from fairlead.surfaces.cli.signals import raise_on_signals

class Thing: pass

raise_on_signals()
thing = Thing()
reference = weakref.ref(thing, lambda _: signal.raise_signal(int(sys.argv[1])))
del thing
try:
    threading.Event().wait()
except KeyboardInterrupt:
    sys.exit(7)
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 7), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_signal_in_a_callback_ends_the_command(number: int, status: int) -> None:
    """The exception that Python ignores is raised again later, and nothing is printed."""
    done = ended(sys.executable, "-c", IGNORED, str(int(number)), status=status)
    assert done.stdout + done.stderr == ""
