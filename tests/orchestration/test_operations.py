"""Jobs that people run in Dagster, for a group of real consumers on real services."""

import subprocess
import sys
from typing import Any

import dagster as dg
import pytest
from typer.testing import CliRunner

from fairlead.surfaces.cli import app
from tests.fixtures.pipelines import StartConsumers
from tests.orchestration.test_planning import planned_shares
from tests.pipeline import Pipeline
from tests.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

#: Program that runs each job named on standard input, and prints whether Spark was imported.
APPROVE_AND_WITHDRAW = """
import sys
import dagster as dg
from orchestration.definitions import defs
from orchestration.proxy import ACTOR_TAG

group = sys.argv[1]
with dg.DagsterInstance.ephemeral() as instance:
    for line in iter(sys.stdin.readline, ''):
        job, version = line.split()[0], {"version": int(v) for v in line.split()[1:]}
        definition = defs.resolve_job_def(job)
        (node,) = definition.nodes
        given = {"ops": {node.name: {"config": {"group": group, "reason": "why", **version}}}}
        definition.execute_in_process(instance=instance, run_config=given, tags={ACTOR_TAG: "kim"})
        print("pyspark" in sys.modules, flush=True)
"""


def outcome(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """Return the metadata of a job's only output."""
    (output,) = (event for event in result.all_events if event.is_successful_output)
    return {name: value.value for name, value in output.step_output_data.metadata.items()}


def test_plan_is_approved_withdrawn_and_rolled_back_to(
    pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str
) -> None:
    """Consumers follow the plan, fall back after its withdrawal, and follow it after a rollback.

    The jobs `approve` and `withdraw` do not import Spark.
    """
    consumers = start_consumers(unique_name)
    fallback = consumers.owned
    assert CliRunner().invoke(app, ["plan", unique_name]).exit_code == 0
    command = [sys.executable, "-c", APPROVE_AND_WITHDRAW, unique_name]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("approve 1\n")
        assert process.stdout.readline() == "False\n"

        def adopted() -> bool:
            pipeline.sensor("approved_plans")  # repeatedly, like the daemon
            return consumers.owned == planned

        planned = planned_shares(pipeline, consumers, 1)
        eventually(adopted, "the consumers follow the plan")
        process.stdin.write("withdraw\n")
        assert process.stdout.readline() == "False\n"
        process.stdin.close()
    eventually(lambda: consumers.owned == fallback, "the consumers fall back")

    assert pipeline.operate("rollback", group=unique_name, version=1, reason="it was fine").success
    assert pipeline.store.get(unique_name, 2).state == "proposed"
    approval: dict[str, Any] = {"group": unique_name, "version": 2, "reason": "agreed"}
    assert not pipeline.operate("approve", **approval, sha256="0" * 64).success
    approved = pipeline.operate("approve", actor="lee", **approval)
    assert outcome(approved)["state"] == "approved"

    def states() -> list[str]:
        return [row["state"] for row in pipeline.history(unique_name)]

    def followed_again() -> bool:
        pipeline.sensor("approved_plans")  # repeatedly, like the daemon
        return consumers.owned == planned

    eventually(followed_again, lambda: f"the plan is followed again: {states()} {consumers.owned}")
    assert states() == ["withdrawn", "published"]
    steps = pipeline.sql(
        "SELECT state, actor FROM fairlead.plan_event WHERE group_id = %s"
        " AND (state = 'withdrawn' OR (state, version) = ('approved', 2)) ORDER BY state",
        unique_name,
    )
    assert [(step["state"], step["actor"]) for step in steps] == [
        ("approved", "lee"),
        ("withdrawn", "kim"),
    ]


def test_refused_operation_is_not_retried(pipeline: Pipeline, unique_name: str) -> None:
    """A refused job fails with the reason. It is not retried: a retry would be refused, too."""
    result = pipeline.operate("reject", group=unique_name, version=7, reason="no")
    assert not result.success
    (failure,) = (event for event in result.all_events if event.is_step_failure)
    description = failure.step_failure_data.user_failure_data
    assert description is not None
    assert description.description == f"group {unique_name} has no version 7"
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
