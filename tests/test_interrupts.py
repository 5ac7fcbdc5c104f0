"""Tests of Ctrl-C do not depend on who started them."""

import signal
import subprocess
import sys

import pytest

from tests.interrupts import accepting_ctrl_c
from tests.waiting import PATIENCE_S

SLEEP = "import time; print('up', flush=True); time.sleep(600)"


@pytest.mark.parametrize("disposition", [signal.SIG_IGN, signal.SIG_DFL])
def test_child_ends_by_ctrl_c_where_we_ignore_it(disposition: signal.Handlers) -> None:
    """Started with `&` in a script or from a terminal: a child ends, and we stay as before."""
    before = signal.signal(signal.SIGINT, disposition)
    try:
        with (
            accepting_ctrl_c(),
            subprocess.Popen(
                [sys.executable, "-c", SLEEP],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as child,
        ):
            assert child.stdout is not None
            assert child.stdout.readline() == "up\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(PATIENCE_S) == -signal.SIGINT
        assert signal.getsignal(signal.SIGINT) == disposition
    finally:
        signal.signal(signal.SIGINT, before)
