"""Runs that the fork server forks: Dagster starts, cancels and misses them as any other."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.launcher.base import LaunchRunContext, WorkerStatus

from orchestration.launcher import PROCESS_TAG, ForkingRunLauncher
from tests.fairlead.followers.helpers import eventually
from tests.orchestration.forked import endless, noted
from tests.orchestration.test_forkserver import FORKED, serving

DAGSTER_YAML = """
run_launcher:
  module: orchestration.launcher
  class: ForkingRunLauncher
telemetry:
  enabled: false
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """Return a Dagster whose runs a fork server forks."""
    home = tmp_path_factory.mktemp("dagster")
    (home / "dagster.yaml").write_text(DAGSTER_YAML)
    with (
        serving(home, FORKED, "dagster._cli.api"),
        dg.DagsterInstance.from_config(str(home)) as made,
    ):
        yield made


def launched(instance: dg.DagsterInstance, job: dg.JobDefinition, file: Path) -> str:
    """Launch a job as Dagster's daemon does; return the run's id."""
    source = dg.reconstructable(job)
    (op,) = (node.name for node in job.nodes)
    run = instance.create_run_for_job(
        job_def=source.get_definition(),
        job_code_origin=source.get_python_origin(),
        run_config={"ops": {op: {"config": {"file": str(file)}}}},
    )
    launcher = instance.run_launcher
    assert isinstance(launcher, ForkingRunLauncher)
    launcher.launch_run(LaunchRunContext(dagster_run=run, workspace=None))
    return run.run_id


def status(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    """Return how a run stands."""
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def test_a_run_is_forked_and_succeeds(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Its process is a child of the server, and its tag names it."""
    run_id = launched(instance, noted, tmp_path / "noted")
    eventually(
        lambda: status(instance, run_id) == dg.DagsterRunStatus.SUCCESS, "it ends", within_s=60
    )
    told = json.loads((tmp_path / "noted").read_text())
    run = instance.get_run_by_id(run_id)
    assert run is not None
    assert json.loads(run.tags[PROCESS_TAG])["pid"] == told["pid"]
    assert told["parent"] != os.getpid()


def test_a_run_is_cancelled(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Whoever cancels it may be another process than the one that launched it."""
    run_id = launched(instance, endless, tmp_path / "endless")
    eventually((tmp_path / "endless").exists, "it runs", within_s=60)
    with dg.DagsterInstance.from_config(instance.root_directory) as webserver:
        assert webserver.run_launcher.terminate(run_id)
        eventually(
            lambda: status(webserver, run_id) == dg.DagsterRunStatus.CANCELED,
            "it ends",
            within_s=60,
        )
        assert not webserver.run_launcher.terminate(run_id)


def test_monitoring_misses_a_process(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Where nobody waits for it any more: it runs, and it does not; of other runs nobody knows."""
    run_id = launched(instance, endless, tmp_path / "endless")
    eventually((tmp_path / "endless").exists, "it runs", within_s=60)
    run = instance.get_run_by_id(run_id)
    assert run is not None
    launcher = instance.run_launcher
    assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
    os.kill(int((tmp_path / "endless").read_text()), signal.SIGKILL)
    eventually(
        lambda: launcher.check_run_worker_health(run).status == WorkerStatus.FAILED, "it is missed"
    )
    repeated = instance.create_run_for_job(endless, run_config=run.run_config, tags=run.tags)
    assert launcher.check_run_worker_health(repeated).status == WorkerStatus.RUNNING


def test_a_run_whose_process_dies_fails(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Nobody waits for it for ever; the log says which process ended how."""
    run_id = launched(instance, endless, tmp_path / "endless")
    eventually((tmp_path / "endless").exists, "it runs", within_s=60)
    pid = int((tmp_path / "endless").read_text())
    os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: status(instance, run_id) == dg.DagsterRunStatus.FAILURE, "it fails", within_s=60
    )
    said = [entry.message for entry in instance.all_logs(run_id)]
    assert any(f"process {pid} ended with code -9" in line for line in said)
