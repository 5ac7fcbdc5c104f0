"""`fairlead up`: what keeps it from starting, and all of it, started, damaged and ended."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from pydantic import SecretStr

from fairlead.errors import ConfigurationError, SandboxError
from fairlead.sandbox.recorded_processes import recorded, still_running
from fairlead.settings import PostgresSettings, Settings
from fairlead.surfaces.up import At, check, require_free
from tests.ui.running import free_port
from tests.waiting import PATIENCE_S, eventually

FAIRLEAD = Path(sys.executable).with_name("fairlead")
#: Everything answers within this, beside another suite on two cores.


def on(settings: Settings, url: str, state_dir: Path) -> Settings:
    """Return settings with another database and state directory."""
    database = PostgresSettings(url=SecretStr(url))
    return settings.model_copy(update={"postgres": database, "state_dir": state_dir})


@pytest.mark.kafka
@pytest.mark.postgres
def test_schema_is_asked_for_and_not_made(
    settings: Settings, database: str, tmp_path: Path
) -> None:
    """The command that makes it is told; what else the doctor finds is told before."""
    told: list[str] = []
    with pytest.raises(ConfigurationError, match=r"fairlead db upgrade"):
        check(on(settings, database, tmp_path), told.append)
    assert any(line.startswith("warning: keys: plans are not signed") for line in told)


def test_a_second_one_is_refused(tmp_path: Path) -> None:
    """Two daemons on one home are more than Dagster takes."""
    with (
        recorded(tmp_path, "fairlead up"),
        pytest.raises(SandboxError, match=f"process {os.getpid()}"),
    ):
        require_free(tmp_path, At(), pytest.fail)


def test_a_port_that_is_taken_is_named_with_its_option(tmp_path: Path) -> None:
    """Whoever scrapes metrics knows the port: no other one is taken instead."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = At(dagster_port=free_port(), pages_port=taken.getsockname()[1])
        with pytest.raises(ConfigurationError, match=r"--port names another"):
            require_free(tmp_path, at, pytest.fail)


def test_what_a_killed_one_left_is_ended(tmp_path: Path) -> None:
    """Its parts have no parent that would."""
    told: list[str] = []
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with (
        subprocess.Popen(command, start_new_session=True) as left,
        recorded(tmp_path, "dagster", left.pid),
    ):
        require_free(tmp_path, At(dagster_port=free_port(), pages_port=free_port()), told.append)
        left.wait(PATIENCE_S)  # psutil has waited for it: how it ended is not known any more
    assert told == [f"ended dagster, process {left.pid}"]


@pytest.fixture
def running(
    settings: Settings, migrated: str, tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], list[str], At]]:
    """Return the command, running, the lines of its log so far, and where it serves."""
    at = At(dagster_port=free_port(), pages_port=free_port())
    config = tmp_path / "fairlead.toml"
    config.write_text(f"""
state_dir = "{tmp_path / "state"}"
kafka.bootstrap_servers = "{settings.kafka.bootstrap_servers}"
postgres.url = "{migrated}"
discovery.include = ["nobody"]
looks.every = "PT5S"
""")
    ports = ("--port", str(at.pages_port), "--dagster-port", str(at.dagster_port))
    lines: list[str] = []
    with subprocess.Popen(
        [FAIRLEAD, "up", "--plan", *ports],
        cwd=tmp_path,
        env={**os.environ, "FAIRLEAD_CONFIG": str(config)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        output = process.stdout
        threading.Thread(target=lambda: lines.extend(output), daemon=True).start()
        try:
            yield process, lines, at
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)


@pytest.mark.kafka
@pytest.mark.postgres
@pytest.mark.spark
@pytest.mark.test_long(
    guarded_by="tests/fairlead/sandbox/test_supervisor.py"
    "::test_what_is_killed_is_started_again_and_that_is_said"
)
def test_all_of_it_runs_is_mended_and_ends(
    running: tuple[subprocess.Popen[str], list[str], At], tmp_path: Path
) -> None:
    """Addresses answer when they are told, planning is on, looks are taken, and nothing is left."""
    process, lines, at = running

    def said(text: str) -> bool:
        assert process.poll() is None, "".join(lines)
        return any(text in line for line in lines)

    eventually(lambda: said("Planning is on (planning_sensor)"), "it starts")
    assert said(f"up      | Dagster  {at.dagster}\n")
    for address in (f"{at.dagster}/server_info", at.pages):
        with urlopen(address, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own server
            assert answer.status == 200
    eventually(lambda: said("Looked at 0 groups"), "looks are taken")
    pages = next(part for part in still_running(tmp_path / "state") if part.name == "pages")
    os.kill(pages.pid, signal.SIGKILL)
    eventually(lambda: said("pages has ended (by signal SIGKILL)"), "that is said")
    names = {"forks", "dagster", "pages", "spark", "fork server", "fairlead up"}
    assert {part.name for part in still_running(tmp_path / "state")} <= names
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 5
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert [
        command(relative) for relative in family if command(relative)
    ] == []  # the dead have none
    assert still_running(tmp_path / "state") == []
    beyond = [left for left in psutil.process_iter() if str(tmp_path) in " ".join(command(left))]
    assert beyond == []


def command(process: psutil.Process) -> list[str]:
    """Return a process's command line, where it still has one."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
