"""What the tests of the UI start: `dagster dev`, `fairlead serve` and a browser.

Belongs here: starting and ending them, and what a person does on every page. Does not: what the
pages have to show (the tests).
"""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fairlead.surfaces.demo.surroundings import dagster_yaml
from orchestration.forkserver import MODULES
from tests.fairlead.followers.helpers import eventually
from tests.interrupts import heeding_ctrl_c

ROOT: Final = Path(__file__).parents[2]
#: Screenshots of the last run; nothing reads them but people.
SCREENSHOTS: Final = ROOT / ".fairlead" / "screenshots"
START_S: Final = 240.0
STOP_S: Final = 120.0
_WORKSPACE: Final = """\
load_from:
  - python_module:
      module_name: tests.ui.definitions
      location_name: fairlead
"""


@contextmanager
def dagster_dev(home: Path, port: int, environment: Mapping[str, str]) -> Iterator[str]:
    """Run `dagster dev`, webserver and daemon; yields the UI's address.

    Parameters
    ----------
    home
        An empty folder for Dagster's state and its log, `dev.log`.
    port
        A free port.
    environment
        Variables beside this process's own: `DAGSTER_POSTGRES_URL` and Fairlead's settings.
    """
    (home / "dagster.yaml").write_text(dagster_yaml())
    workspace = home / "workspace.yaml"
    workspace.write_text(_WORKSPACE)
    arguments = ("dev", "-w", str(workspace), "-h", "127.0.0.1", "-p", str(port))
    around = {"DAGSTER_HOME": str(home), **environment}
    with (
        subprocess.Popen(
            [sys.executable, "-m", "orchestration.forkserver", *MODULES, "tests.ui.definitions"],
            cwd=ROOT,
            env={**os.environ, **around},
        ) as forks,
        _running(
            [sys.executable, "-m", "dagster", *arguments],
            f"http://127.0.0.1:{port}",
            home / "dev.log",
            around,
        ) as url,
    ):
        yield url
        forks.terminate()


@contextmanager
def fairlead_serve(log: Path, port: int, environment: Mapping[str, str]) -> Iterator[str]:
    """Run `fairlead serve`; yields its address."""
    command = [str(Path(sys.executable).with_name("fairlead")), "serve", "--port", str(port)]
    with _running(command, f"http://127.0.0.1:{port}", log, environment) as url:
        yield url


@contextmanager
def _running(
    command: list[str], url: str, log: Path, environment: Mapping[str, str]
) -> Iterator[str]:
    """Run a server in a process group of its own until the context ends, as Ctrl-C would end it."""
    with log.open("wb") as output, heeding_ctrl_c():
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
                with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own server
                    return True
            except OSError:
                return False

        try:
            eventually(answers, f"{url} answers", within_s=START_S)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as candidate:
        candidate.bind(("127.0.0.1", 0))
        port: int = candidate.getsockname()[1]
        return port
