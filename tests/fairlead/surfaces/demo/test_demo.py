"""`fairlead demo` as a new user runs it: to its end, and interrupted by Ctrl-C."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairlead.surfaces.demo.scenario import (
    CURED,
    KEEPS_UP,
    ONE_IS_EXPENSIVE,
    ONE_IS_SLOW,
    DemoGroup,
)
from tests.interrupts import accepting_ctrl_c
from tests.lengths import form
from tests.programs import FAIRLEAD
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.spark]

ROOT = Path(__file__).parents[4]


def started_for(state_dir: Path) -> list[psutil.Process]:
    """Return the processes whose environment or command contains the demo's state directory."""
    found = []
    for process in psutil.process_iter():
        try:
            command = " ".join(process.cmdline())
            mine = process.environ().get("FAIRLEAD_STATE_DIR") == str(state_dir)
        except psutil.Error:
            continue
        if process.pid != os.getpid() and (mine or str(state_dir) in command):
            found.append(process)
    return found


def start(state_dir: Path) -> subprocess.Popen[str]:
    """Start the demo in a process group of its own, as a shell does."""
    with accepting_ctrl_c():
        return subprocess.Popen(
            [FAIRLEAD, "demo"],
            cwd=ROOT,
            env={**os.environ, "FAIRLEAD_STATE_DIR": str(state_dir)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo's state directory."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def printed(state_dir: Path) -> str:
    """Return the output of a complete, successful demo."""
    with start(state_dir) as process:
        printed, _ = process.communicate(timeout=6 * PATIENCE_S)
    log = state_dir / "demo" / "consumers.log"
    assert process.returncode == 0, printed + (log.read_text()[-5000:] if log.exists() else "")
    return printed


@pytest.fixture(scope="module")
def report(printed: str, state_dir: Path) -> dict[str, Any]:
    """Return the JSON report that this demo has written."""
    assert "report.json" in printed
    read: dict[str, Any] = json.loads((state_dir / "demo" / "report.json").read_text())
    return read


def groups(report: dict[str, Any]) -> Iterator[tuple[DemoGroup, dict[str, Any]]]:
    """Yield each group for which the demo makes a plan, with its part of the report."""
    return zip(CURED, [report, *report["other_groups"][:-1]], strict=True)


def test_report_has_a_row_for_each_consumer(report: dict[str, Any]) -> None:
    """A consumer's row has lag and partitions: before the plan, predicted, and after adoption."""
    for scenario, group in groups(report):
        assert group["group"] == scenario.name
        assert group["assignor"]
        assert group["plan_version"] == 1
        assert list(group["consumers"]) == scenario.members
        totals = {}
        for stage in ("before", "predicted", "after"):
            consumers = [consumer[stage] for consumer in group["consumers"].values()]
            totals[stage] = sum(consumer["lag"] for consumer in consumers)
            assert sorted(
                (topic, number)
                for consumer in consumers
                for topic, numbers in consumer["partitions"].items()
                for number in numbers
            ) == sorted(
                (topic, number)
                for topic, counts in scenario.backlog.items()
                for number in range(len(counts))
            )
        assert totals["before"] == totals["predicted"]
        measured_again = {
            name: consumer["after"]["lag"] != consumer["predicted"]["lag"]
            for name, consumer in group["consumers"].items()
        }
        assert any(measured_again.values()), measured_again


def test_every_consumer_owns_its_planned_share(report: dict[str, Any]) -> None:
    """After adoption, each consumer owns the partitions that the plan predicted."""
    for _, group in groups(report):
        assert group["adopted"] is True
        for consumer in group["consumers"].values():
            assert consumer["after"]["partitions"] == consumer["predicted"]["partitions"]


def test_plan_takes_lag_from_the_most_loaded_consumer(report: dict[str, Any]) -> None:
    """With the plan, the highest lag of a consumer is lower than with the owners before.

    Each group catches up with the plan and without it. These seconds are not compared: the machine
    may become busier between the two.
    """
    for _, group in groups(report):
        highest = {
            stage: max(consumer[stage]["lag"] for consumer in group["consumers"].values())
            for stage in ("before", "predicted")
        }
        assert highest["predicted"] < highest["before"]
        assert min(group["drain_seconds"].values()) > 0.0


def test_groups_have_the_right_diagnoses(report: dict[str, Any]) -> None:
    """Two groups are unbalanced, one has a slow member, whose name is shown, and one is healthy.

    The evidence names an expensive partition with its time per record; the consumer of this
    partition is not called slow.
    """
    spread, (slow, costly, healthy) = report, report["other_groups"]
    assert (costly["diagnosis"], costly["names"]) == ("unbalanced", [ONE_IS_EXPENSIVE.members[1]])
    ((expensive, times),) = ONE_IS_EXPENSIVE.expensive.items()
    assert f"A record of {expensive} takes " in costly["evidence"]
    topic, partition = expensive.split("-")
    measured = {key: mean for key, (_, mean, _) in costly["seconds_per_record"][topic].items()}
    truth = dict.fromkeys(measured, 1 / ONE_IS_EXPENSIVE.rate) | {
        partition: times / ONE_IS_EXPENSIVE.rate
    }
    assert measured == pytest.approx(truth, rel=0.25)
    assert spread["diagnosis"] == "unbalanced"
    assert set(spread["names"]) <= set(spread["consumers"])
    assert (slow["diagnosis"], slow["names"][0]) == ("slow member", ONE_IS_SLOW.members[1])
    assert (healthy["group"], healthy["diagnosis"]) == (KEEPS_UP.name, "healthy")
    assert healthy["plan_version"] is None


def test_reports_and_next_steps_are_shown(printed: str) -> None:
    """The output ends with a report of each group and the next steps."""
    for text in ("by sticky-lag-aware", "Drained in", "needs no plan", "make dev", "make psql"):
        assert text in printed


def test_demo_leaves_no_process_behind(printed: str, state_dir: Path) -> None:
    """When the demo ends, all processes that it started have ended."""
    assert printed
    assert started_for(state_dir) == []


def test_ctrl_c_ends_all_processes(printed: str, state_dir: Path) -> None:
    """Ctrl-C while consumers or the planning job run leaves no process, and prints no traceback."""
    name, under_way = form(short=("consumers.log", ""), long=("planning.log", "STEP_START"))
    log = state_dir / "demo" / name
    log.unlink(missing_ok=True)
    with start(state_dir) as process:

        def is_under_way() -> bool:
            assert process.poll() is None, process.communicate()[0]
            return log.exists() and under_way in log.read_text()

        eventually(is_under_way, f"{log} says so")
        assert started_for(state_dir)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0
    assert "report.json" in printed  # a complete run has used the same folder before
    assert "Traceback" not in output
    assert started_for(state_dir) == []
