"""`fairlead dev`: the load that its consumers get."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import psutil

from fairlead.surfaces.demo.dev import Reports
from fairlead.surfaces.demo.load import Load
from fairlead.surfaces.demo.scenario import KEEPS_UP
from fairlead.surfaces.demo.topics_and_consumers import Consumers
from tests.waiting import eventually

#: A process that ends when its standard input is closed, as a worker does.
STANDS_IN = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def workers() -> list[psutil.Process]:
    """Return the running processes that stand in for workers."""
    return [child for child in psutil.Process().children() if _stands_in(child)]


def _stands_in(process: psutil.Process) -> bool:
    try:
        return process.cmdline()[:3] == STANDS_IN
    except (psutil.ZombieProcess, psutil.NoSuchProcess):  # another test's, which is about to go
        return False


def test_load_outlives_a_consumer_that_is_killed(tmp_path: Path) -> None:
    """If a consumer is killed, one message names it and the load continues."""
    lines: list[str] = []
    group = replace(KEEPS_UP, consumers=2)
    with Consumers(group, group.name, "", None, tmp_path / "log", STANDS_IN) as consumers:
        reports, batches = Reports([consumers], lines.append), 0

        def each() -> None:
            nonlocal batches
            reports.read()
            batches += bool(lines)

        with Load("", [], each) as load:
            eventually(lambda: len(workers()) == 2, "both workers")
            workers()[0].kill()
            eventually(lambda: batches > 2, "more batches after the kill")
            load.stop()
    (line,) = lines
    assert re.match(r"Consumer keeps-up-[12] has ended with exit code -9. The load continues", line)
