"""`fairlead dev`: services, a demo cluster under steady skewed load, and the web UIs.

With Kafka's default assignor, the busiest consumer of the group `orders` gets more records than it
can process, so that the lag grows. With a plan, every consumer keeps up.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient
from rich.console import Console

from fairlead.common.visible import visible
from fairlead.errors import ConfigurationError, SandboxError
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.surfaces.demo.environment import DemoEnvironment, demo_environment
from fairlead.surfaces.demo.frequent_samples import frequent_samples
from fairlead.surfaces.demo.load import steady_load
from fairlead.surfaces.demo.scenario import DEV_GROUPS, PAYMENTS
from fairlead.surfaces.demo.topics_and_consumers import Consumers, create_backlog
from fairlead.surfaces.links import asset_url, lineage_url
from fairlead.surfaces.ports import DAGSTER_PORT, PAGES_PORT
from fairlead.surfaces.up import At, check, running

#: Seconds between samples. A plan needs several samples, and people wait for the first plan.
SAMPLE_EVERY_S: Final = 5.0


def dev(state_dir: Path, console: Console) -> None:
    """Run the services, the demo cluster and the UIs until Ctrl-C, then stop them."""
    with ExitStack() as stack:
        with console.status("Starting Kafka and Postgres ..."):
            around = stack.enter_context(demo_environment(state_dir, progress=console.print))
        settings = around.settings

        def tell(line: str) -> None:
            console.print(visible(line), markup=False, highlight=False, soft_wrap=True)

        check(settings, tell)
        with console.status("Starting the demo cluster ..."):
            _start_cluster(around, stack, tell)
        at = At(dagster_port=_free_port(DAGSTER_PORT), pages_port=_free_port(PAGES_PORT))
        path = around.dagster_home / "dev.log"
        log = stack.enter_context(path.open("w"))
        with ExitStack() as parts:
            with console.status(f"Starting Dagster, pages and Spark; their log: {path} ..."):
                planning = parts.enter_context(
                    running(settings, around.dagster_home, at, plan=True, log=log, tell=tell)
                )
            console.print(f"\n[bold]Dagster[/]  {at.dagster}\n[bold]Plans[/]    {at.pages}")
            console.print(_first_steps(at.dagster, planning), highlight=False, soft_wrap=True)
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()
            console.print("Stopping ...")


def _start_cluster(
    around: DemoEnvironment, stack: ExitStack, tell: Callable[[str], object]
) -> None:
    """Start groups of consumers under steady load, and take samples."""
    servers, settings = around.services.bootstrap_servers, around.settings
    client = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    existing = client.list_topics(timeout=30).topics
    log = around.dagster_home / "consumers.log"
    groups = []
    for group in DEV_GROUPS:
        if not set(group.backlog) <= set(existing):
            create_backlog(servers, group)
        consumers = Consumers(
            group, group.name, servers, plan_topic=settings.kafka.plan_topic, log=log
        )
        groups.append(stack.enter_context(consumers))

    dead = set[str]()

    def read_reports() -> None:
        for consumers in groups:
            try:
                consumers.update()
            except SandboxError as error:
                if str(error) not in dead:
                    dead.add(str(error))
                    tell(f"{error}. The other consumers continue")

    def say_why(error: Exception) -> None:
        tell(
            f"No more records arrive, in any group: {error}. To restart the load, press Ctrl-C and "
            "start again"
        )

    stack.enter_context(steady_load(servers, DEV_GROUPS, read_reports, say_why))
    engine = create_store_engine(settings.postgres)
    stack.callback(engine.dispose)
    names = [group.name for group in DEV_GROUPS]
    stack.enter_context(
        frequent_samples(settings, names, every_s=SAMPLE_EVERY_S, store=PlanStore(engine))
    )


def _first_steps(dagster_url: str, planning: str) -> str:
    """Return text that leads a person through the approval of a plan in the UI.

    The text is about the only group of the demo whose plans need a person's approval.
    """
    group = PAYMENTS.name
    switches = f"{dagster_url}/automation"
    return f"""
{planning}.
The plans of {group} wait for you; those of the other groups are approved by policy.
To turn planning on or off: {switches} (on other clusters it is off by default).

Your first plan
  1. Plan:    {lineage_url(dagster_url)}
              wait for the run that plans {group}, or start one: Materialize all..., choose the
              partition {group} (it appears within a minute), Launch 1 run
  2. Decide:  {asset_url(dagster_url, "assignment_plan", group)}
              after the run, in half a minute: the changes, a review, how to approve the plan
  3. Look:    {asset_url(dagster_url, "plan_adoption", group)}
              within a minute of your approval: the number of partitions at their planned owner

In another terminal: make psql for SQL, .venv/bin/fairlead groups for the command line.
Ctrl-C stops everything; the data stay for the next time, make clean removes them.
"""


def _free_port(usual: int) -> int:
    """Return the usual port or, if it is taken, the next free port."""
    for port in range(usual, usual + 100):
        with socket.socket() as candidate:
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ConfigurationError(f"No port from {usual} to {usual + 99} is free")
