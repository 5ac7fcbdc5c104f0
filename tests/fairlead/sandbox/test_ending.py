"""`make clean` ends recorded processes before it removes files."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fairlead.sandbox.ending import end_recorded
from fairlead.sandbox.recorded_processes import recorded, still_running
from tests.programs import ended
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
SLEEPS = "import time; time.sleep(600)"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Return the Python of a new environment that also finds the tests' packages."""
    venv.create(tmp_path / "venv", symlinks=True)
    return tmp_path / "venv" / "bin" / "python"


@pytest.fixture
def sleeper(python: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Return a running process of that environment."""
    with subprocess.Popen([python, "-c", SLEEPS], start_new_session=True) as process:
        yield process
        process.kill()


def clean(python: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """End recorded processes as `make clean` does."""
    paths = os.pathsep.join([str(ROOT), *(path for path in sys.path if "site-packages" in path)])
    environment = {**os.environ, "PYTHONPATH": paths}
    return ended(python, "-m", "fairlead.sandbox.ending", cwd=folder, env=environment)


def test_recorded_processes_are_ended(
    python: Path, sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    with recorded(tmp_path / ".fairlead", "webserver", sleeper.pid):
        done = clean(python, tmp_path)
    assert done.stderr == f"ended webserver, process {sleeper.pid}\n"
    assert sleeper.wait(PATIENCE_S) != 0


def test_reused_pid_is_not_ended(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """A process with a recorded pid, but another start time, is not ended."""
    with recorded(tmp_path, "webserver", sleeper.pid):
        (path,) = (tmp_path / "running").glob("*.json")
        about = json.loads(path.read_text())
        path.write_text(json.dumps(about | {"started_at": about["started_at"] - 3600}))
        end_recorded(tmp_path, pytest.fail)
        assert still_running(tmp_path) == []
    assert psutil.pid_exists(sleeper.pid)
