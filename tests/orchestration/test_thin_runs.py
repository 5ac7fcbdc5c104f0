"""What a person decides takes effect in a run that starts no Spark, and imports little."""

import json
import os
import subprocess
import sys
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from fairlead.surfaces.cli import app
from tests.orchestration.conftest import StartConsumers
from tests.orchestration.test_operations import outcome
from tests.pipeline import Pipeline
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

#: Runs a job as Dagster's launcher does, in a process of its own, and tells what it did.
RUN = """
import json, sys
import dagster as dg
from orchestration.definitions import defs
job, config, cohort = json.loads(sys.stdin.read())
with dg.DagsterInstance.ephemeral() as instance:
    instance.add_dynamic_partitions("cohort", [cohort])
    result = defs.resolve_job_def(job).execute_in_process(instance=instance, run_config=config)
    materialized = [one.asset_key.to_user_string() for one in result.all_events
                    if one.is_step_materialization]
    said = [entry.user_message for entry in instance.all_logs(result.run_id)]
print(json.dumps({
    "materialized": materialized,
    "said": said,
    "imported": sorted({name.partition(".")[0] for name in sys.modules}),
}))
"""
HEAVY = {"pyspark", "py4j", "pandas", "matplotlib", "ortools", "aiokafka"}


def in_a_process(job: str, cohort: str, **config: Any) -> dict[str, Any]:
    """Run a job by which a person changes a plan, and return what it said of itself."""
    question = [job, {"ops": {f"{job}_plan": {"config": config}}}, cohort]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(question),
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_approval_is_followed_without_spark(
    pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str
) -> None:
    """A plan from a shell, approved: published and adopted in that run; so is its retirement."""
    consumers = start_consumers(unique_name)
    fallback = consumers.owned
    assert CliRunner().invoke(app, ["plan", unique_name]).exit_code == 0
    assert pipeline.only_version(unique_name).state == "proposed"

    run = in_a_process("approve", unique_name, group=unique_name, version=1, reason="agreed")
    assert pipeline.only_version(unique_name).state == "published"
    assert consumers.owned != fallback
    assert run["materialized"] == ["published_plan", "plan_adoption"]
    steps = log_of_an_approval(unique_name)
    assert [line for line in run["said"] if line in steps] == steps
    assert HEAVY & set(run["imported"]) == set()

    run = in_a_process("retire", unique_name, group=unique_name, reason="too risky")
    eventually(lambda: consumers.owned == fallback, "the consumers fall back")
    assert {*HEAVY, "kafka"} & set(run["imported"]) == set()


def log_of_an_approval(group: str) -> list[str]:
    """Return what the log of an approval's run says, in this order."""
    return [
        f"Approved version 1 of {group}",
        "Publishing what is approved of 1 group",
        "Looking who follows the plans of 1 group, for up to 20 s at 1 new plan",
        (
            "What happens next: consumers follow it: plan_adoption shows how far; the job retire "
            "takes it back"
        ),
    ]


def test_approver_who_may_not_publish_leaves_it_to_the_sensor(
    pipeline: Pipeline,
    start_consumers: StartConsumers,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The database says who may: as a member of fairlead_approver, the run approves, and ends."""
    start_consumers(unique_name)
    assert CliRunner().invoke(app, ["plan", unique_name]).exit_code == 0
    pipeline.know(unique_name)
    url = pipeline.settings.postgres.url.get_secret_value()
    with psycopg.connect(url, autocommit=True) as superuser:
        approver = f"{unique_name}-kim"
        superuser.execute(f"""CREATE ROLE "{approver}" LOGIN PASSWORD 'p'""".encode())
        superuser.execute(f'GRANT fairlead_approver TO "{approver}"'.encode())
        try:
            with monkeypatch.context() as patch:
                place = url.rpartition("@")[2]
                patch.setenv("FAIRLEAD_POSTGRES__URL", f"postgresql://{approver}:p@{place}")
                run = pipeline.operate("approve", group=unique_name, version=1, reason="agreed")
            assert run.success
            facts = outcome(run)
            assert (facts["state"], pipeline.record(unique_name)) == ("approved", None)
            assert "approved_plans publishes it within 30 s" in facts["what happens next"]
            assert len(pipeline.sensor("approved_plans").run_requests or ()) == 1
        finally:
            superuser.execute(f'DROP ROLE "{approver}"'.encode())
