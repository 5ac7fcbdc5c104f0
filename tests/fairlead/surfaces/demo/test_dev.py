"""`fairlead dev`: what is printed is true when it is printed, and one group's plans wait."""

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorStatus

from fairlead.domain.policy import policy_for
from fairlead.errors import SandboxError
from fairlead.settings import load_settings
from fairlead.surfaces.demo.dev import PLANNING, _first_steps, _turn_on, _wait_for
from fairlead.surfaces.demo.scenario import ASKS_FIRST, DEV_GROUPS, DemoGroup
from fairlead.surfaces.demo.surroundings import CHECKOUT, POLICIES

pytestmark = pytest.mark.long

STARTS_LATE = """
import http.server, sys, time
time.sleep(1)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)\
.serve_forever()
"""


class Refusing(BaseHTTPRequestHandler):
    """Answers with an error, as a server that has yet to load its code."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_error(503)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def shares(group: DemoGroup) -> list[int]:
    """Return the load of each consumer under `range`: its topics' partitions, in stretches."""
    loads = [0] * group.consumers
    for counts in group.backlog.values():
        each, more = divmod(len(counts), group.consumers)
        first = 0
        for member in range(group.consumers):
            count = each + (member < more)
            loads[member] += sum(counts[first : first + count])
            first += count
    return loads


def test_address_is_printed_when_it_answers(tmp_path: Path) -> None:
    """Waiting ends with the first answer, however late the server is."""
    with HTTPServer(("127.0.0.1", 0), Refusing) as free:
        port = free.server_port
    command = [sys.executable, "-c", STARTS_LATE, str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(f"http://127.0.0.1:{port}/", process, tmp_path / "log")
            assert process.poll() is None
        finally:
            process.kill()


def test_server_that_ends_is_reported_with_its_log(tmp_path: Path) -> None:
    """An error page is no answer, and a process that is gone will give none."""
    log = tmp_path / "log"
    log.write_text("no module named orchestration\n")
    with (
        HTTPServer(("127.0.0.1", 0), Refusing) as server,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
    ):
        Thread(target=server.serve_forever, daemon=True).start()
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)
        with pytest.raises(SandboxError, match="no module named orchestration"):
            _wait_for(f"http://127.0.0.1:{server.server_port}/", process, log)
        server.shutdown()


def test_first_steps_lead_to_a_plan_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group that is named waits for a person by the demo's policies, and no other does."""
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(POLICIES))
    policies = load_settings().policies
    waiting = [
        group for group in DEV_GROUPS if not policy_for(group.name, policies).approval.automatic
    ]
    assert waiting == [ASKS_FIRST]
    steps = _first_steps("http://127.0.0.1:3000", planning=True)
    assert f"partition {ASKS_FIRST.name} (there within a minute)" in steps
    assert f"/assets/assignment_plan?view=partitions&partition={ASKS_FIRST.name}" in steps


@pytest.mark.parametrize("planning", [True, False])
def test_first_steps_say_whether_anything_is_planned(*, planning: bool) -> None:
    """Both switches are off by default, and a group that is late for an hour would be a riddle."""
    steps = _first_steps("http://127.0.0.1:3000", planning=planning)
    assert ("Planning is on: " in steps) is planning
    assert ("Planning is off" in steps) is not planning
    assert "http://127.0.0.1:3000/automation" in steps


def test_planning_is_turned_on_in_dagster(tmp_path: Path) -> None:
    """In a real webserver: as if somebody had switched the sensor on under Automation."""
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with HTTPServer(("127.0.0.1", 0), Refusing) as free:
        port = free.server_port
    command = [
        *(sys.executable, "-m", "dagster_webserver", "-w", str(CHECKOUT / "workspace.yaml")),
        *("-h", "127.0.0.1", "-p", str(port)),
    ]
    environment = {**os.environ, "DAGSTER_HOME": str(home)}
    log = tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, cwd=CHECKOUT, env=environment, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            _wait_for(f"http://127.0.0.1:{port}/server_info", process, log)
            assert _turn_on(f"http://127.0.0.1:{port}", PLANNING), log.read_text()
        finally:
            process.terminate()
    with dg.DagsterInstance.from_config(str(home)) as instance:
        (state,) = instance.all_instigator_state()
    assert (state.instigator_name, state.status) == (PLANNING, InstigatorStatus.RUNNING)


def test_group_that_asks_needs_a_plan() -> None:
    """By `range` one consumer gets more than it can do; no partition alone is too much for one."""
    produced = ASKS_FIRST.load * ASKS_FIRST.consumers / ASKS_FIRST.records
    heaviest_partition = max(max(counts) for counts in ASKS_FIRST.backlog.values())
    assert max(shares(ASKS_FIRST)) * produced > 1.1
    assert heaviest_partition * produced < 0.9
