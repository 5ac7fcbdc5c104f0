"""Services for the UI's tests: those of `make dev`, started in parallel.

Belongs here: starting and stopping services. Belongs elsewhere: the contents of pages (the tests),
the browser (`browser`).
"""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fairlead.sandbox.spark import SparkServer
from fairlead.settings import SparkSettings
from fairlead.surfaces.demo.environment import dagster_yaml
from tests.interrupts import accepting_ctrl_c
from tests.programs import FAIRLEAD
from tests.waiting import PATIENCE_S, eventually

ROOT: Final = Path(__file__).parents[2]
#: Folder of the screenshots of the last test run.
SCREENSHOTS: Final = ROOT / ".fairlead" / "screenshots"
_WORKSPACE: Final = """\
load_from:
  - python_module:
      module_name: tests.ui.definitions
      location_name: fairlead
"""


#: Function that waits until a service is ready.
Ready = Callable[[], object]


@contextmanager
def warm_spark(state_dir: Path) -> Iterator[Ready]:
    """Run the Spark server of a state directory, which planning runs share, as in `make dev`."""
    server = SparkServer(state_dir, SparkSettings())
    with ThreadPoolExecutor(1) as beside:
        starting = beside.submit(server.start)
        try:
            yield starting.result
        finally:
            server.stop()  # also waits until it has started


@contextmanager
def dagster_dev(home: Path, port: int, environment: Mapping[str, str]) -> Iterator[Ready]:
    """Run `dagster dev`: Dagster's webserver and its daemon.

    Parameters
    ----------
    home
        Folder for Dagster's state and its log, `dev.log`.
    port
        Free port for the webserver.
    environment
        Additional environment variables: `DAGSTER_POSTGRES_URL` and Fairlead's settings.
    """
    (home / "dagster.yaml").write_text(dagster_yaml())
    workspace = home / "workspace.yaml"
    workspace.write_text(_WORKSPACE)
    arguments = ("dev", "-w", str(workspace), "-h", "127.0.0.1", "-p", str(port))
    command = [sys.executable, "-m", "dagster", *arguments]
    with _running(command, port, home / "dev.log", environment) as ready:
        yield ready


@contextmanager
def fairlead_serve(log: Path, port: int, environment: Mapping[str, str]) -> Iterator[Ready]:
    """Run `fairlead serve`."""
    command = [str(FAIRLEAD), "serve", "--port", str(port)]
    with _running(command, port, log, environment) as ready:
        yield ready


@contextmanager
def _running(
    command: list[str], port: int, log: Path, environment: Mapping[str, str]
) -> Iterator[Ready]:
    """Run a server in its own process group, and send it SIGINT at the end of the block."""
    with log.open("wb") as output, accepting_ctrl_c():
        started = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with started as process:

        def answers() -> bool:
            assert process.poll() is None, f"{command} ended:\n{log.read_text()[-3000:]}"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=PATIENCE_S):
                    return True
            except OSError:
                return False

        try:
            yield lambda: eventually(answers, f"{command} answers")
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def free_port() -> int:
    """Return a TCP port that no process uses."""
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        port: int = candidate.getsockname()[1]
        return port
