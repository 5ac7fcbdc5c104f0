"""Service processes are found by their command lines, and killed if they ignore signals."""

import signal
import sys
from collections.abc import Sequence
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


def test_process_is_found_by_its_command_line_until_it_ends(tmp_path: Path) -> None:
    process = _spawn(SLEEP, tmp_path)

    def named(command: Sequence[str]) -> bool:
        return str(tmp_path) in command

    assert processes.find(named) == process
    processes.end(process, signal.SIGKILL, grace_s=PATIENCE_S)
    assert processes.find(named) is None


def test_process_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    process = _spawn(STUBBORN, tmp_path)
    assert not processes.end(process, signal.SIGTERM, grace_s=0.5)  # clock: it does not end
    assert processes.ended(process)
