"""Runs that the fork server forks: Dagster starts, cancels and misses them as any other."""

import ast
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import dagster as dg
import pytest

from orchestration import _dagster_private as private
from orchestration.launcher import PROCESS_TAG, ForkingRunLauncher
from tests.orchestration.forked import endless, noted
from tests.orchestration.test_forkserver import FORKED, serving
from tests.waiting import eventually

pytestmark = pytest.mark.long

DAGSTER_YAML = """
run_launcher:
  module: orchestration.launcher
  class: ForkingRunLauncher
code_servers:
  local_startup_timeout: 900
telemetry:
  enabled: false
"""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """Return a Dagster whose runs a fork server forks."""
    home = tmp_path_factory.mktemp("dagster")
    (home / "dagster.yaml").write_text(DAGSTER_YAML)
    with (
        serving(home, FORKED, "orchestration.launcher"),
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
    launcher.launch_run(private.LaunchRunContext(dagster_run=run, workspace=None))
    return run.run_id


def process_of(file: Path) -> int:
    """Wait until a run has written down its process, and return it."""
    eventually(lambda: file.exists() and bool(file.read_text()), "it runs")
    return int(file.read_text())


def status(instance: dg.DagsterInstance, run_id: str) -> dg.DagsterRunStatus:
    """Return how a run stands."""
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def test_a_run_is_forked_and_succeeds(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Its process is a child of the server, and its tag names it."""
    run_id = launched(instance, noted, tmp_path / "noted")
    eventually(lambda: status(instance, run_id) == dg.DagsterRunStatus.SUCCESS, "it ends")
    told = json.loads((tmp_path / "noted").read_text())
    run = instance.get_run_by_id(run_id)
    assert run is not None
    assert json.loads(run.tags[PROCESS_TAG])["pid"] == told["pid"]
    assert told["parent"] != os.getpid()


def test_a_run_is_cancelled(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Whoever cancels it may be another process than the one that launched it."""
    run_id = launched(instance, endless, tmp_path / "endless")
    process_of(tmp_path / "endless")
    with dg.DagsterInstance.from_config(instance.root_directory) as webserver:
        assert webserver.run_launcher.terminate(run_id)
        eventually(
            lambda: status(webserver, run_id) == dg.DagsterRunStatus.CANCELED,
            "it ends",
        )
        assert not webserver.run_launcher.terminate(run_id)


def test_monitoring_misses_a_process(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Where nobody waits for it any more: it runs, and it does not; of other runs nobody knows."""
    run_id = launched(instance, endless, tmp_path / "endless")
    pid = process_of(tmp_path / "endless")
    run = instance.get_run_by_id(run_id)
    assert run is not None
    launcher = instance.run_launcher
    assert launcher.check_run_worker_health(run).status == private.WorkerStatus.RUNNING
    os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: launcher.check_run_worker_health(run).status == private.WorkerStatus.FAILED,
        "it is missed",
    )
    repeated = instance.create_run_for_job(endless, run_config=run.run_config, tags=run.tags)
    assert launcher.check_run_worker_health(repeated).status == private.WorkerStatus.RUNNING


def test_a_run_whose_process_dies_fails(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Nobody waits for it for ever; the log says which process ended how."""
    run_id = launched(instance, endless, tmp_path / "endless")
    pid = process_of(tmp_path / "endless")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: status(instance, run_id) == dg.DagsterRunStatus.FAILURE, "it fails")
    said = [entry.message for entry in instance.all_logs(run_id)]
    assert any(f"process {pid} ended with code -9" in line for line in said)


def private_names() -> list[tuple[str, str]]:
    """Return the modules and names that `_dagster_private` imports from Dagster."""
    assert private.__file__ is not None
    tree = ast.parse(Path(private.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return [
        (str(statement.module), alias.name)
        for statement in imports
        for alias in statement.names
        if str(statement.module).startswith("dagster.")
    ]


@pytest.mark.parametrize("tag", ["[]", "1", '{"run": "r"}', "null", "{", '"run"'])
def test_a_tag_that_somebody_typed_is_no_process(instance: dg.DagsterInstance, tag: str) -> None:
    """Monitoring goes on to the next run."""
    run = dg.DagsterRun(job_name="j", run_id="r", tags={PROCESS_TAG: tag})
    launcher = instance.run_launcher
    assert isinstance(launcher, ForkingRunLauncher)
    assert "RUNNING" in str(launcher.check_run_worker_health(run).status)


@pytest.mark.parametrize(("module", "name"), private_names())
def test_a_private_name_that_is_gone_is_named(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them Dagster drops, the import goes on and says which."""
    monkeypatch.delattr(import_module(module), name)
    assert private.__file__ is not None
    told = runpy.run_path(private.__file__)
    assert told["MISSING"].startswith(f"cannot import name '{name}' from '{module}'")


def test_a_launcher_without_a_private_name_leaves_runs_to_dagster(
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One line of the log says what is missing; the server beside it is not asked."""
    asked: list[str] = []
    monkeypatch.setattr(private, "MISSING", "cannot import name 'PackageCodePointer'")
    monkeypatch.setattr(
        dg.DefaultRunLauncher,
        "launch_run",
        lambda _, context: asked.append(context.dagster_run.run_id),
    )
    with dg.DagsterInstance.from_config(instance.root_directory) as unforked:
        run_id = launched(unforked, noted, tmp_path / "noted")
        run = unforked.get_run_by_id(run_id)
        assert not unforked.run_launcher.supports_check_run_worker_health
    assert run is not None
    assert (asked, PROCESS_TAG in run.tags) == ([run_id], False)
    (line,) = [message for message in caplog.messages if "without a fork" in message]
    assert "cannot import name 'PackageCodePointer'" in line


@pytest.mark.test_long(
    guarded_by="tests/orchestration/test_launcher.py"
    "::test_a_launcher_without_a_private_name_leaves_runs_to_dagster"
)
def test_dagster_starts_runs_itself_without_a_private_name(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    """The same where Dagster serves the code, and its daemon launches: a run comes of it."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.orchestration.unforked"),
            *(instance.root_directory, str(tmp_path / "noted")),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    assert (tmp_path / "noted").exists()
    (run,) = instance.get_runs(limit=1)
    assert run.status == dg.DagsterRunStatus.SUCCESS
    assert PROCESS_TAG not in run.tags
    assert "monitored: False" in done.stderr
    (line,) = [splitline for splitline in done.stderr.splitlines() if "without a fork" in splitline]
    assert "cannot import name 'PackageCodePointer'" in line


def test_only_one_module_names_dagsters_private_ones() -> None:
    """What a new version of Dagster may move is found in one place."""
    assert private.__file__ is not None
    folder = Path(private.__file__).parent
    naming = [path.name for path in folder.glob("*.py") if "dagster._" in path.read_text()]
    assert naming == ["_dagster_private.py"]
