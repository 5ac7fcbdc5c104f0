"""`fairlead serve` as a process: the printed address, and how it ends."""

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.programs import FAIRLEAD
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.long


def test_serves_until_a_signal_ends_it(tmp_path: Path) -> None:
    """The server prints its address even without a database; Ctrl-C and SIGTERM end it cleanly."""
    with ExitStack() as stack:
        for number, code in ((signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)):
            process = stack.enter_context(start(tmp_path))
            stack.callback(process.kill)  # in case the test fails
            assert process.stderr is not None
            line = next(line for line in process.stderr if "serving at" in line)
            address = line.rpartition(" ")[2].strip()
            assert address.startswith("http://127.0.0.1:")
            with urlopen(f"{address}/health", timeout=PATIENCE_S) as answer:  # noqa: S310 - our own address
                assert answer.read() == b"ok\n"
            process.send_signal(number)
            assert process.wait(PATIENCE_S) == code
            assert "Traceback" not in process.stderr.read()


def start(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [FAIRLEAD, "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env=os.environ | {"FAIRLEAD_POSTGRES__URL": "postgresql://nobody@127.0.0.1:1/nothing"},
    )
