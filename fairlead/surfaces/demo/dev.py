"""`fairlead dev`: services, a demo cluster under steady skewed load, and the web UIs on it.

Under Kafka's default assignment the busiest consumer of the group `orders` gets more records than
it can process, so that its lag grows; planned, every consumer keeps up.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from confluent_kafka.admin import AdminClient
from rich.console import Console

from fairlead.errors import ConfigurationError, SandboxError
from fairlead.sandbox.processes import tail
from fairlead.sandbox.spark import SparkServer
from fairlead.settings import Settings, WebSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.surfaces.demo.cluster import Consumers, create_backlog
from fairlead.surfaces.demo.load import Load
from fairlead.surfaces.demo.looking import Looking
from fairlead.surfaces.demo.scenario import ASKS_FIRST, DEV_GROUPS
from fairlead.surfaces.demo.surroundings import CHECKOUT, Surroundings, surroundings
from fairlead.surfaces.links import asset_url, lineage_url
from fairlead.surfaces.web import build_app
from fairlead.surfaces.web.server import PORT, serving

DAGSTER_PORT = 3000
START_TIMEOUT_S = 180.0
POLL_S = 0.5
#: Of a cluster of its own, a first plan need not wait for minutes.
LOOK_EVERY_S = 5.0
#: Plans the groups for which a look calls; off until somebody turns it on, but here.
PLANNING = "planning_sensor"
#: For as long a code location may load after the webserver answers.
LOADING_S = 60.0
_START_SENSOR = """
mutation Start($sensor: SensorSelector!) {
  startSensor(sensorSelector: $sensor) { __typename }
}
"""
STOP_GRACE_S = 45.0  # longer than Dagster gives its own processes


def dev(state_dir: Path, console: Console) -> None:
    """Run until Ctrl-C; then stop everything that was started."""
    workspace = CHECKOUT / "workspace.yaml"
    if not workspace.exists():
        raise ConfigurationError("`fairlead dev` runs from a checkout: the wheel has no pipeline")
    with ExitStack() as stack:
        with console.status("Starting Kafka and Postgres ..."):
            around = stack.enter_context(surroundings(state_dir, progress=console.print))
        servers = around.services.bootstrap_servers
        spark = stack.enter_context(_warm_spark(around))
        with console.status("Starting the demo cluster ..."):
            existing = (
                AdminClient({"bootstrap.servers": servers, "log_level": 2})
                .list_topics(timeout=30)
                .topics
            )
            groups = []
            for group in DEV_GROUPS:
                if not set(group.backlog) <= set(existing):
                    create_backlog(servers, group)
                groups.append(
                    stack.enter_context(
                        Consumers(
                            group,
                            group.name,
                            servers,
                            plan_topic=around.settings.kafka.plan_topic,
                            log=around.dagster_home / "consumers.log",
                        )
                    )
                )
        for consumers in groups:
            consumers.start_work()

        def groups_report() -> None:
            for consumers in groups:
                consumers.update()

        stack.enter_context(Load(servers, DEV_GROUPS, groups_report))
        names = [group.name for group in DEV_GROUPS]
        engine = create_store_engine(around.settings.postgres)
        stack.callback(engine.dispose)
        looking = Looking(around.settings, names, every_s=LOOK_EVERY_S, store=PlanStore(engine))
        stack.enter_context(looking)
        port = _free_port(DAGSTER_PORT)
        dagster_url = f"http://127.0.0.1:{port}"
        pages = stack.enter_context(_pages(around.settings, dagster_url))
        os.environ |= {"FAIRLEAD_WEB__URL": pages, "FAIRLEAD_WEB__DAGSTER_URL": dagster_url}
        with _dagster(workspace, around.dagster_home, port, console) as process:
            with console.status("Turning planning on, warming Spark ..."):
                planning = _turn_on(dagster_url, PLANNING)
                spark.wait()
            console.print(f"\n[bold]Dagster[/]  {dagster_url}\n[bold]Plans[/]    {pages}")
            steps = _first_steps(dagster_url, planning=planning)
            console.print(steps, highlight=False, soft_wrap=True)
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
            console.print("Stopping ...")


@contextmanager
def _warm_spark(around: Surroundings) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the warm Spark while everything else starts; yield the process that does.

    Runs start Spark by themselves where it cannot be had. One that ran before is left running.
    """
    server = SparkServer(around.settings.state_dir, around.settings.spark)
    ran_before = server.running() is not None
    command = [
        sys.executable,
        "-c",
        "from fairlead.surfaces.cli import main; main()",
        "spark",
        "up",
    ]
    with (around.dagster_home / "spark.log").open("wb") as log:
        starting = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield starting
        finally:
            starting.terminate()
            starting.wait()
            if not ran_before:
                server.stop()


@contextmanager
def _pages(settings: Settings, dagster_url: str) -> Iterator[str]:
    """Serve what `fairlead serve` does; yield where."""
    engine = create_store_engine(settings.postgres)
    web = WebSettings(dagster_url=dagster_url)
    app = build_app(engine, settings.model_copy(update={"web": web}))
    try:
        with serving(app, port=_free_port(PORT)) as address:
            yield address
    finally:
        engine.dispose()


def _turn_on(dagster_url: str, sensor: str) -> bool:
    """Turn a sensor on, once Dagster has loaded it; False: it could not be."""
    names = {
        "repositoryLocationName": "fairlead",
        "repositoryName": "__repository__",
        "sensorName": sensor,
    }
    query = json.dumps({"query": _START_SENSOR, "variables": {"sensor": names}}).encode()
    headers = {"Content-Type": "application/json"}
    deadline = time.monotonic() + LOADING_S
    while time.monotonic() < deadline:
        request = Request(f"{dagster_url}/graphql", query, headers)  # noqa: S310 - our own server
        try:
            with urlopen(request, timeout=10) as answer:  # noqa: S310 - our own server
                data = json.load(answer).get("data") or {}
        except (OSError, ValueError):
            data = {}
        if (data.get("startSensor") or {}).get("__typename") == "Sensor":
            return True
        time.sleep(POLL_S)
    return False


def _first_steps(dagster_url: str, *, planning: bool) -> str:
    """Say what to click first: the one group whose plans wait for a person.

    Parameters
    ----------
    dagster_url
        Where the Dagster UI is reached.
    planning
        Whether groups are planned by themselves.
    """
    group = ASKS_FIRST.name
    switches = f"{dagster_url}/automation"
    whose = f"The plans of {group} wait for you; those of the other groups are approved by policy."
    automatic = (
        f"""Planning is on: the sensor {PLANNING} plans a group within minutes of a look that finds
a plan worth its price. {whose}
To turn planning off: {switches} (elsewhere it is off until you turn it on there)."""
        if planning
        else f"""Planning is off: Dagster did not let {PLANNING} be turned on, and
nothing is planned by itself. To turn it on: {switches}
{whose}"""
    )
    return f"""
{automatic}

Your first plan
  1. Plan:    {lineage_url(dagster_url)}
              wait for the run that plans {group}, or make one: Materialize all..., choose the
              partition {group} (there within a minute), Launch 1 run
  2. Decide:  {asset_url(dagster_url, "assignment_plan", group)}
              once the run has ended, half a minute: what would change, a review, how to approve it
  3. Look:    {asset_url(dagster_url, "plan_adoption", group)}
              within a minute of your approval: who follows it, and what that achieved

In another terminal: make psql for SQL, .venv/bin/fairlead groups for the command line.
Ctrl-C stops everything; the data stay for the next time, make clean removes them.
"""


@contextmanager
def _dagster(
    workspace: Path, home: Path, port: int, console: Console
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `dagster dev` while the block lasts; the block begins when it answers."""
    command = [
        *(sys.executable, "-m", "dagster", "dev"),
        *("-w", str(workspace), "-h", "127.0.0.1", "-p", str(port)),
    ]
    path = home / "dev.log"
    with path.open("wb") as log:
        process = subprocess.Popen(command, cwd=CHECKOUT, stdout=log, stderr=subprocess.STDOUT)
        try:
            with console.status(f"Starting Dagster; its log: {path} ..."):
                _wait_for(f"http://127.0.0.1:{port}/server_info", process, path)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until a server answers.

    Raises
    ------
    SandboxError
        It has ended, or takes too long.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(address, timeout=5):  # noqa: S310 - our own server
                return
        except OSError:
            time.sleep(POLL_S)
    raise SandboxError(f"Dagster does not answer; the end of {log}:\n{tail(log)}")


def _free_port(usual: int) -> int:
    """Return the first free port from the usual one on."""
    for port in range(usual, usual + 100):
        with socket.socket() as candidate:
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ConfigurationError(f"No port from {usual} to {usual + 99} is free")
