"""The whole pipeline killed, before and after it decided, and what the next run makes of it.

Kills within a step, around every transaction and send: `tests/fairlead/workflows/test_crashes.py`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.lengths import form
from tests.orchestration.conftest import StartConsumers
from tests.pipeline import APPROVED_BY_POLICY, Pipeline
from tests.waiting import PATIENCE_S

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.postgres,
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]

ROOT = Path(__file__).parents[2]
#: A kill after each: nothing is decided yet, and a plan is.
STEPS: Final = form(short=["assignment_plan"], long=["candidate_plans", "assignment_plan"])


def kill_after(step: str, group: str, home: Path) -> None:
    """Plan a group in a process of its own, which is killed as soon as a step has succeeded."""
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with subprocess.Popen(
        [sys.executable, "-m", "orchestration", "planning", "--verbose", group],
        cwd=ROOT,
        env={**os.environ, "DAGSTER_HOME": str(home)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = list(until(process.stderr, f" - {step} - STEP_SUCCESS - "))
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert process.wait() == -signal.SIGKILL, "".join(said)
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert alive == [], f"what {group} had started"


def until(lines: Iterable[str], text: str) -> Iterator[str]:
    """Yield lines up to the one that contains a text."""
    for line in lines:
        yield line
        if text in line:
            return
    raise AssertionError(f"the run ended without {text!r}")


def assert_whole(pipeline: Pipeline, group: str) -> None:
    """Hold versions, decisions, history and the topic against each other."""
    states = {row["version"]: row["state"] for row in pipeline.history(group)}
    versions = list(states)
    assert versions == list(range(1, len(versions) + 1))
    decided = [version for _, _, version in pipeline.decisions(group) if version is not None]
    assert decided == versions
    for version in versions:
        plan = pipeline.store.get(group, version)
        shares = [share.partitions for share in plan.verify().members.values()]
        assert sum(numbers.size for share in shares for numbers in share.values()) == 4
        assert pipeline.store.predicted([plan])[plan.group, plan.version]["lag_max"] > 0
    assert states, pipeline.decisions(group)
    *older, newest = states.values()
    assert newest == "published"
    assert set(older) <= {"stale", "superseded"}
    published, record = pipeline.store.get(group, versions[-1]), pipeline.record(group)
    assert record is not None
    assert published.approved_sha256 == published.sha256
    assert record.value == published.document
    measured = pipeline.sql(
        "SELECT count(*) AS partitions FROM fairlead.lag_history WHERE group_id = %s"
        " GROUP BY snapshot_id",
        group,
    )
    assert {row["partitions"] for row in measured} == {4}


def test_run_after_a_killed_one_leaves_nothing_half_done(
    pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str, tmp_path: Path
) -> None:
    """Killed with and without a plan: no gap, no duplicate, no half plan, the approved bytes."""
    # Nothing arrives any more: soon there is time enough for what waits, by the default.
    soon = 'objective = "PT10S"\nhorizon = "PT30S"\n'
    pipeline.configure(APPROVED_BY_POLICY + soon)
    groups = [f"{unique_name}-{step}" for step in STEPS]
    for group in groups:
        start_consumers(group)
    homes = [tmp_path / f"dagster-{step}" for step in STEPS]
    with ThreadPoolExecutor(len(STEPS)) as pool:
        list(pool.map(kill_after, STEPS, groups, homes))
    left = {
        step: [row["state"] for row in pipeline.history(f"{unique_name}-{step}")] for step in STEPS
    }
    assert left.get("candidate_plans", []) == []
    assert left["assignment_plan"] in (["approved"], ["sending"], ["published"])  # the next began

    assert pipeline.run("planning", *groups).success

    for group in groups:
        assert_whole(pipeline, group)
