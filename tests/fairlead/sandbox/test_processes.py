"""A service process that does not end within its grace period."""

import signal
import sys
from pathlib import Path

import psutil

from fairlead.sandbox import processes
from tests.waiting import PATIENCE_S

SLEEP = "import sys, time; print('up', flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"


def _spawn(code: str, tmp_path: Path) -> psutil.Process:
    log = tmp_path / "log"
    process = processes.spawn([sys.executable, "-c", code, str(tmp_path)], log=log)
    assert processes.wait_until(lambda: "up" in log.read_text(), timeout_s=PATIENCE_S)
    return process


def test_process_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    process = _spawn(STUBBORN, tmp_path)
    assert not processes.end(process, signal.SIGTERM, grace_s=0.5)  # clock: it ignores SIGTERM
    assert processes.ended(process)
