"""The parts of the planner on one machine, which run during a `with` block.

Belongs here: the command and the address of each part. Belongs elsewhere: messages to users.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TextIO

from fairlead.sandbox.supervisor import Part, Supervisor
from fairlead.settings import Settings
from fairlead.spark.warm import WarmServer, forget
from fairlead.surfaces.doctor.switches import SENSOR, planning_on, read_switches
from fairlead.surfaces.links import LOCATION
from fairlead.surfaces.pipeline import HOME_VARIABLE, PIPELINE, furnish
from fairlead.surfaces.ports import DAGSTER_PORT, PAGES_PORT
from fairlead.surfaces.web.server import HOST

_FAIRLEAD: Final = str(Path(sys.executable).with_name("fairlead"))
#: The part's command starts Spark in another process, and ends. If Spark ends, the next planning
#: run starts it again.
SPARK: Final = Part("spark", (_FAIRLEAD, "spark", "up"), ends=True)


@dataclass(frozen=True)
class At:
    """Addresses of Dagster and the pages.

    Parameters
    ----------
    host
        Address to listen at; 127.0.0.1: only this machine reaches it.
    dagster_port, pages_port
        Ports.
    """

    host: str = HOST
    dagster_port: int = DAGSTER_PORT
    pages_port: int = PAGES_PORT

    @property
    def dagster(self) -> str:
        """Address at which this machine reaches Dagster."""
        return f"http://{self._near}:{self.dagster_port}"

    @property
    def pages(self) -> str:
        """Address at which this machine reaches the pages."""
        return f"http://{self._near}:{self.pages_port}"

    @property
    def _near(self) -> str:
        return HOST if self.host == "0.0.0.0" else self.host  # noqa: S104 - the address is compared, not opened


@contextmanager
def running(
    settings: Settings,
    home: Path,
    at: At,
    *,
    plan: bool,
    log: TextIO,
    tell: Callable[[str], None],
) -> Iterator[str]:
    """Run Dagster, pages and Spark during the block; first wait until Dagster and pages answer.

    Parameters
    ----------
    settings
        The settings; processes are recorded in their state directory.
    home
        Dagster's home, created if missing.
    at
        Addresses to listen at.
    plan
        Whether to turn planning on. If False, planning is left as it is.
    log
        File for the output of all parts.
    tell
        Called with a line for the user.

    Yields
    ------
    A sentence about whether planning is on.

    Raises
    ------
    SandboxError
        A part ended several times before it answered.
    """
    state_dir = settings.state_dir.absolute()
    environment = {
        **os.environ,
        HOME_VARIABLE: str(home),
        "FAIRLEAD_STATE_DIR": str(state_dir),
        "FAIRLEAD_WEB__URL": settings.web.url or at.pages,
        "FAIRLEAD_WEB__DAGSTER_URL": settings.web.dagster_url or at.dagster,
    }
    # The socket is in a temporary folder, because only this user may read such a folder, and
    # because the path is short: a socket's path has at most 107 bytes.
    with TemporaryDirectory(prefix="fairlead-") as folder:
        socket = Path(folder) / "code.sock"
        workspace = furnish(home, socket)
        parts = (
            *(code(socket), daemon(workspace), webserver(workspace, at)),
            *(pages(at), SPARK),
        )
        with (
            spark_ends(state_dir),
            Supervisor(
                parts, log=log, tell=tell, state_dir=state_dir, environment=environment
            ) as supervisor,
        ):
            supervisor.wait_ready("code", "webserver", "pages")
            if plan:
                _turn_on_planning(workspace, environment, tell)
            yield _describe_planning(home)


def _turn_on_planning(
    workspace: Path, environment: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    command = (sys.executable, "-m", "dagster", "sensor", "start", SENSOR, "-w", str(workspace))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().rpartition("\n")[2]
        tell(f"Planning cannot be turned on ({why}); turn {SENSOR} on in Dagster, under Automation")


def _describe_planning(home: Path) -> str:
    try:
        switches = planning_on(read_switches(home))
    except OSError:
        return "Whether planning is on is unknown; run `fairlead doctor` later"
    if not switches:
        return "Planning is off: to turn it on, run `fairlead up --plan`"
    when = "when a sample shows that a plan helps" if SENSOR in switches else "at its times"
    return f"Planning is on ({', '.join(switches)}): groups are planned {when}"


def code(socket: Path) -> Part:
    """Return the part that loads Dagster's definitions and serves them.

    `dagster code-server start` is not used, because it loads the definitions in a child process. If
    this child ended, the server would continue to run, and would not be restarted.
    """
    command = (
        *(sys.executable, "-m", "dagster", "api", "grpc", "--socket", str(socket)),
        *("--module-name", f"{PIPELINE}.definitions", "--location-name", LOCATION),
        "--inject-env-vars-from-instance",
    )
    return Part("code", command, answers=socket)


def daemon(workspace: Path) -> Part:
    """Return Dagster's daemon: sensors, schedules and the queue of runs."""
    command = (sys.executable, "-m", "dagster._daemon", "run", "-w", str(workspace))
    return Part("daemon", command, after="code")


def webserver(workspace: Path, at: At) -> Part:
    """Return Dagster's UI."""
    command = (
        *(sys.executable, "-m", "dagster_webserver", "-w", str(workspace)),
        *("-h", at.host, "-p", str(at.dagster_port)),
    )
    return Part("webserver", command, answers=f"{at.dagster}/server_info", after="code")


def pages(at: At) -> Part:
    """Return Fairlead's pages and metrics."""
    command = (_FAIRLEAD, "serve", "--host", at.host, "--port", str(at.pages_port))
    return Part("pages", command, answers=f"{at.pages}/health")


@contextmanager
def spark_ends(state_dir: Path) -> Iterator[None]:
    """At the end of the block, stop Spark, unless it was running before the block."""
    before = WarmServer.recorded(state_dir)
    try:
        yield
    finally:
        server = WarmServer.recorded(state_dir)
        if server is not None and server != before:
            server.kill()
            forget(state_dir)
