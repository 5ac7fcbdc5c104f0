"""`fairlead dev`: one group's plans wait for a person, and its output leads there."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from fairlead.domain.policy import policy_for
from fairlead.settings import load_settings
from fairlead.surfaces.demo.dev import Reports, _first_steps
from fairlead.surfaces.demo.environment import POLICIES
from fairlead.surfaces.demo.load import Load
from fairlead.surfaces.demo.scenario import ASKS_FIRST, DEV_GROUPS, KEEPS_UP
from fairlead.surfaces.demo.topics_and_consumers import Consumers
from fairlead.surfaces.up import Planning
from tests.waiting import eventually

#: A process that ends when its standard input does, as a worker.
STANDS_IN = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def workers() -> list[psutil.Process]:
    """Return the running stand-ins for workers."""
    return [child for child in psutil.Process().children() if _stands_in(child)]


def _stands_in(process: psutil.Process) -> bool:
    try:
        return process.cmdline()[:3] == STANDS_IN
    except (psutil.ZombieProcess, psutil.NoSuchProcess):  # another test's, which is about to end
        return False


def test_load_outlives_a_consumer_that_is_killed(tmp_path: Path) -> None:
    """The killed consumer is named once, and the load continues."""
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


@pytest.mark.long
def test_first_steps_lead_to_a_plan_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the demo's policies only the named group waits for a person."""
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(POLICIES))
    policies = load_settings().policies
    waiting = [
        group for group in DEV_GROUPS if not policy_for(group.name, policies).approval.automatic
    ]
    assert waiting == [ASKS_FIRST]
    steps = _first_steps("http://127.0.0.1:3000", Planning(("planning_sensor",)))
    assert f"partition {ASKS_FIRST.name} (it appears within a minute)" in steps
    assert f"/assets/assignment_plan?view=partitions&partition={ASKS_FIRST.name}" in steps
