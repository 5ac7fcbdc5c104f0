"""`fairlead demo`: from lag to a published plan, end to end, on real services.

Belongs here: the order of steps and the messages. Belongs elsewhere: each step (the other modules
of this package).
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGTERM
from typing import Any

import psutil
import pyarrow as pa
from rich.console import Console

from fairlead.domain.as_problem import planned
from fairlead.domain.samples import by_partition
from fairlead.errors import SandboxError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.sandbox.processes import end
from fairlead.store.engine import create_store_engine
from fairlead.store.group_history import read_diagnoses
from fairlead.store.history_queries import read_groups
from fairlead.store.plans import PlanStore
from fairlead.surfaces.demo.environment import DemoEnvironment, demo_environment, reset
from fairlead.surfaces.demo.frequent_samples import frequent_samples
from fairlead.surfaces.demo.load import steady_load
from fairlead.surfaces.demo.report import (
    Lags,
    Row,
    as_text,
    same_owners,
    with_a_plan,
    without_a_plan,
)
from fairlead.surfaces.demo.scenario import CURED, DEMO_GROUPS, DemoGroup
from fairlead.surfaces.demo.topics_and_consumers import Consumers, create_backlog
from fairlead.wire.document import PlanDocument

#: Seconds after which a step of the demo counts as failed. On a slow, busy machine, a planning run
#: takes more than half an hour, because the demo's 22 consumers run at the same time.
STEP_TIMEOUT_S = 7200.0
#: Maximum number of a group's diagnoses that are searched for the one that led to its plan.
DIAGNOSES = 1_000
POLL_S = 0.1
#: Seconds for which records continue to arrive after the plans were adopted, to show their effect.
UNDER_PLANS_S = 15.0
#: Number of samples before planning starts. With fewer, a backlog cannot be distinguished from
#: records that are about to be committed.
SAMPLES = 10
#: Maximum number of further planning runs, for groups without a published plan.
MORE_PLANNING = 5
STOP_GRACE_S = 5.0

NEXT_STEPS = """
Where to go next
  make dev    the Dagster UI on this cluster, with the runs of this demo
  make psql   SQL over the plan history, such as
              SELECT * FROM fairlead.plan_history;
  A consumer that follows plans: examples/kafka_python_consumer.py
  Your own cluster: docs/own-cluster.md
"""


class _Demo:
    """A run of the demo, which compares groups with a plan to identical groups without a plan."""

    def __init__(self, around: DemoEnvironment, console: Console, stack: ExitStack) -> None:
        self._around = around
        self._console = console
        self._stack = stack
        self._directory = around.settings.state_dir / "demo"
        self._directory.mkdir(exist_ok=True)
        self._log = self._directory / "consumers.log"
        self._engine = create_store_engine(around.settings.postgres)
        stack.callback(self._engine.dispose)
        self._planned: dict[str, Consumers] = {}
        self._unplanned: dict[str, Consumers] = {}

    def run(self) -> list[dict[str, Any]]:
        """Run all steps; return one report per group."""
        servers = self._around.services.bootstrap_servers
        with self._step("Producing skewed backlogs"):
            for group in DEMO_GROUPS:
                create_backlog(servers, group)
        with self._step("Starting consumers on Kafka's default assignment"):
            self._start_consumers()
            self._wait(lambda: all(each.settled for each in self._all()), "join their groups")
        before = {name: dict(consumers.owned) for name, consumers in self._planned.items()}
        with steady_load(servers, DEMO_GROUPS) as produced:
            with frequent_samples(self._around.settings, list(self._planned)) as samples:
                with self._step("Working, while records arrive and samples are taken"):
                    self._wait(lambda: len(samples) >= SAMPLES, "get samples")
                with self._step("Planning, through Dagster"):
                    plans = self._plan_until_published()
            diagnosed = self._diagnosed()
            with self._step("Consumers rejoin and adopt the plan"):
                self._wait(lambda: self._adopted(plans), "adopt the plan")
            after = {name: dict(consumers.owned) for name, consumers in self._planned.items()}
            with self._step("Working under the plans"):
                until = time.monotonic() + UNDER_PLANS_S
                self._wait(lambda: time.monotonic() >= until, "work")
            with KafkaGateway(self._around.settings.kafka) as gateway:
                lags_after = lags_of(gateway.snapshot(list(self._planned)).samples)
        seconds = self._drain(
            {group.name: group.records + produced[group.name] for group in DEMO_GROUPS}
        )
        return [
            with_a_plan(
                plans[name],
                diagnosed[name],
                before=before[name],
                after=after[name],
                lags_after=lags_after[name],
                seconds=(seconds[self._unplanned[name].group], seconds[name]),
            )
            if name in plans
            else without_a_plan(name, diagnosed[name], after[name])
            for name in self._planned
        ]

    def _start_consumers(self) -> None:
        """Start all groups; for each that gets a plan, also start a copy that gets none."""
        bootstrap_servers = self._around.services.bootstrap_servers
        plan_topic = self._around.settings.kafka.plan_topic
        for group in DEMO_GROUPS:
            self._planned[group.name] = self._stack.enter_context(
                Consumers(group, group.name, bootstrap_servers, plan_topic, self._log)
            )
        for group in CURED:
            self._unplanned[group.name] = self._stack.enter_context(
                Consumers(group, f"{group.name}-without-plan", bootstrap_servers, None, self._log)
            )

    def _plan_until_published(self) -> dict[str, PlanDocument]:
        """Run planning, again if necessary, until every group that needs a plan has one.

        Rebalances and stalls can make a planning run decide against a plan.
        """
        self._plan(list(self._planned))
        for _ in range(MORE_PLANNING):
            without = [group.name for group in CURED if not self._published(group)]
            if not without:
                break
            self._plan(without)
        plans = {}
        for group in CURED:
            plan = self._published(group)
            if plan is None:
                reason = self._diagnosed()[group.name]["reason"]
                raise SandboxError(f"No plan was published for group {group.name}: {reason}")
            plans[group.name] = plan
        return plans

    def _plan(self, groups: Sequence[str]) -> None:
        """Run Dagster's planning job for groups, as the planning schedule does."""
        log = self._directory / "planning.log"
        command = [sys.executable, "-m", "orchestration", *groups]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            self._wait(lambda: process.poll() is not None, "get their plans")
        finally:
            if process.poll() is None:
                end(psutil.Process(process.pid), SIGTERM, grace_s=STOP_GRACE_S)
        if process.returncode:
            raise SandboxError(f"The planning job failed; see {log}")

    def _diagnosed(self) -> dict[str, Row]:
        """Return a mapping from group to its row of `read_groups`, with a diagnosis.

        This is the diagnosis that led to the published plan or, without a plan, the newest one.
        """
        return {
            row["group"]: {**row, **self._diagnosis(row["group"])}
            for row in read_groups(self._engine)
        }

    def _diagnosis(self, group: str) -> Row:
        plan = PlanStore(self._engine).published(group)
        diagnoses = read_diagnoses(self._engine, group, limit=DIAGNOSES)
        of_plan = (d for d in diagnoses if plan is not None and d["since"] <= plan.snapshot_at)
        return next(of_plan, diagnoses[0])

    def _published(self, group: DemoGroup) -> PlanDocument | None:
        plan = PlanStore(self._engine).published(group.name)
        return None if plan is None else PlanDocument.from_bytes(plan.document, group=group.name)

    def _adopted(self, plans: dict[str, PlanDocument]) -> bool:
        return all(
            self._planned[name].settled and same_owners(self._planned[name].owned, planned(plan))
            for name, plan in plans.items()
        )

    def _drain(self, records: dict[str, int]) -> dict[str, float]:
        """Wait until every group has read all records. Call this after the last record was sent.

        `records` maps the name of a scenario to the number of its records. The result maps each
        group id to the seconds that the group took.
        """
        started_at = time.monotonic()
        with self._step("Draining, while no new records arrive"):
            self._wait(
                lambda: all(
                    consumers.processed >= records[consumers.scenario.name]
                    for consumers in self._all()
                ),
                "drain",
            )
        return {
            consumers.group: max(0.1, consumers.last_processed_at - started_at)
            for consumers in self._all()
        }

    def _all(self) -> list[Consumers]:
        return [*self._planned.values(), *self._unplanned.values()]

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        """Read the consumers' reports until `done()` is true.

        `what` completes the error message "The demo's groups did not ..." after a time-out.
        """
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while True:
            for consumers in self._all():
                consumers.update()
            if done():
                return
            if time.monotonic() > deadline:
                raise SandboxError(
                    f"The demo's groups did not {what} within {STEP_TIMEOUT_S:.0f} s; the "
                    f"consumers' log is {self._log}"
                )
            time.sleep(POLL_S)

    @contextmanager
    def _step(self, what: str) -> Iterator[None]:
        started_at = time.monotonic()
        with self._console.status(f"{what} ..."):
            yield
        self._console.print(f"[bold]{what}[/] [dim]{time.monotonic() - started_at:.1f} s[/]")


def demo(state_dir: Path, console: Console) -> None:
    """Run the demo; print and write its report.

    Raises
    ------
    FairleadError
        A step failed; everything that was started is stopped.
    """
    started_at = time.monotonic()
    reset(state_dir)
    with ExitStack() as stack:
        console.print("[bold]Fairlead[/]: from measured lag to an adopted plan\n")
        with console.status("Starting Kafka and Postgres ..."):
            around = stack.enter_context(demo_environment(state_dir, progress=console.print))
        console.print("[bold]Started Kafka and Postgres[/]")
        reports = _Demo(around, console, stack).run()
        path = state_dir / "demo" / "report.json"
        main, *others = reports
        path.write_text(json.dumps(main | {"other_groups": others}, indent=2) + "\n")
        console.print()
        for report in reports:
            console.print(as_text(report), markup=False, highlight=False)
        with console.status("Stopping ..."):
            stack.close()
    seconds = time.monotonic() - started_at
    console.print(f"The demo took {seconds:.0f} s. Its figures are in {path}.")
    console.print(NEXT_STEPS, highlight=False)


def lags_of(samples: pa.Table) -> Mapping[str, Lags]:
    """Return a mapping from group to topic to the lag of each partition, in records."""
    lags: dict[str, dict[str, dict[int, int]]] = {}
    for row in by_partition(samples).to_pylist():
        position = row["begin"] if row["committed"] < 0 else row["committed"]
        lag = max(0, row["end"] - position)
        lags.setdefault(row["group"], {}).setdefault(row["topic"], {})[row["partition"]] = lag
    return lags
