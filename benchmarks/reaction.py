"""From a cause to the plan that cures it, on real services: `python -m benchmarks.reaction`.

Belongs here: what is timed from where to where, in turns with another revision of this repository
where `--beside` names one; printing, and writing reaction.json. Does not: how a checkout is run
(`reaction_side`), a consumer that slows down (`reaction_chain`), fleets (`fleet`, `fleet_looks`).

A group has twelve partitions and two consumers that follow plans, one of them behind; its looks of
the twenty minutes before are written down (`tests.recalled`). Each round has a group of its own.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks.consumers import KafkaPythonMember
from benchmarks.reaction_side import ROOT, Side, cpu_s
from fairlead.sandbox import Sandbox
from fairlead.settings import KafkaSettings
from tests.recalled import CONSUMED, recall

RESULTS: Final = Path(__file__).with_name("reaction.json")
ROUNDS: Final = 5
PARTS: Final = ("shell", "cold", "warm", "clicks")
PARTITIONS: Final = 12
#: Records behind, of each partition: the first consumer is, by Kafka's range.
BEHIND: Final = (100, 80, 60, 50, 40, 30, 5, 5, 5, 5, 5, 5)
TOPIC: Final = "records"
PATIENCE_S: Final = 400.0
#: Row to the goal, in seconds.
GOALS: Final = {
    "planning run, process start to stored plan, cold Spark": 20.0,
    "planning run, process start to stored plan, warm Spark": 8.0,
    "click in the UI to stored plan, warm Spark": 12.0,
    "approval in the UI to published": 8.0,
    "fairlead plan GROUP --dry-run": 2.0,
    "fairlead groups": 0.6,
    "fairlead --help": 0.3,
}
COLD, WARM, CLICK, APPROVAL, DRY_RUN, GROUPS, HELP = GOALS

Measured = dict[str, list[dict[str, Any]]]


def main() -> None:
    """Measure, print, and write reaction.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", metavar="REV", help="a revision that is measured in turns")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="of it")
    arguments = parser.parse_args()
    console = Console(width=120)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends in order
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        sandbox = Sandbox(folder / "services", progress=console.log)
        services = stack.enter_context(sandbox)
        bench = Bench(services.bootstrap_servers, console, arguments.rounds)
        roots = {"now": ROOT}
        if arguments.beside:
            console.log(f"Checking {arguments.beside} out, with an environment of its own")
            roots["before"] = stack.enter_context(checked_out(arguments.beside))
        for name, root in roots.items():
            side = Side(name, root, folder / name, sandbox.postgres, services.bootstrap_servers)
            side.prepare()
            bench.sides.append(side)
        if "shell" in arguments.only:
            bench.shell()
        if "cold" in arguments.only:
            bench.planning(COLD)
        if {"warm", "clicks"} & set(arguments.only):
            for side in bench.sides:
                side.spark = stack.enter_context(side.warm_spark())
                stack.enter_context(side.fork_server())
                console.log(f"{side.name}: Spark is warm, {side.spark}")
            if "warm" in arguments.only:
                bench.planning(WARM)
            if "clicks" in arguments.only:
                bench.clicks()
    results = bench.results(arguments.beside)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    show(console, results)


class Bench:
    """Rounds of everything, each with the load that the machine had."""

    def __init__(self, servers: str, console: Console, rounds: int) -> None:
        self._servers, self._console, self._rounds = servers, console, rounds
        self.sides: list[Side] = []
        self.measured: dict[str, Measured] = {}
        make_topic(servers)

    def each(self, row: str, measure: Callable[[Side], dict[str, Any]]) -> None:
        """Measure a row, the sides in turns."""
        for number in range(self._rounds):
            for side in self.sides:
                load = os.getloadavg()[0]
                found = measure(side) | {"load": load}
                self.measured.setdefault(row, {}).setdefault(side.name, []).append(found)
                self._console.log(f"{row}, {side.name}, {number + 1}: {found}")

    def shell(self) -> None:
        """Time the commands that a person waits for."""
        with self._groups() as groups:
            self.each(HELP, lambda side: side.run("fairlead", "--help"))
            self.each(GROUPS, lambda side: side.run("fairlead", "groups"))
            self.each(
                DRY_RUN,
                lambda side: side.run("fairlead", "plan", groups[side.name], "--dry-run"),
            )

    def planning(self, row: str) -> None:
        """Time a planning run from a shell, in a process of its own; one before is not counted."""

        def planned(side: Side) -> dict[str, Any]:
            with self._group(side) as group:
                began, at, spent = time.perf_counter(), time.time(), cpu_s()
                command = side.command("python", "-m", "orchestration", "planning", group)
                with subprocess.Popen(
                    command,
                    cwd=side.root,
                    env=side.surroundings,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                ) as process:
                    states = ("proposed", "approved", "sending", "published")
                    stored = side.wait_for_state(group, states, began + PATIENCE_S)
                    process.wait()
                whole = time.perf_counter() - began
                used = {"whole_s": whole, "cpu_s": cpu_s() - spent}
                return {"s": stored - began, **used, **parts(side.events(), at)}

        if row == WARM:
            for side in self.sides:
                planned(side)
        self.each(row, planned)

    def clicks(self) -> None:
        """Time a click to the stored plan, and an approval to the published one."""
        with ExitStack() as stack:
            urls = {side.name: stack.enter_context(side.dagster_dev()) for side in self.sides}

            def planned(side: Side) -> dict[str, Any]:
                url = urls[side.name]
                with self._group(side) as group:
                    side.know(url, group)
                    began, at = time.perf_counter(), time.time()
                    until = began + PATIENCE_S
                    run_id = side.launch(url, "planning", group=group)
                    stored = side.wait_for_state(group, ("proposed",), until)
                    side.ended(run_id, until)
                    planning = {"s": stored - began, **parts(side.events(run_id), at)}
                    config = {"group": group, "version": 1, "reason": "measured"}
                    began, at = time.perf_counter(), time.time()
                    until = began + PATIENCE_S
                    approval = {"ops": {"approve_plan": {"config": config}}}
                    run_id = side.launch(url, "approve", config=approval, group=None)
                    published = side.wait_for_state(group, ("published",), until)
                    side.ended(run_id, until)
                    self.measured.setdefault(APPROVAL, {}).setdefault(side.name, []).append(
                        {
                            "s": published - began,
                            "load": os.getloadavg()[0],
                            **parts(side.events(run_id), at),
                        }
                    )
                    return planning

            self.each(CLICK, planned)

    @contextmanager
    def _group(self, side: Side) -> Iterator[str]:
        """Start a group of two consumers, one of them behind, and write down its past."""
        group = f"{side.name}-{uuid.uuid4().hex[:8]}"
        commit(self._servers, group)
        config: dict[str, Any] = {
            "bootstrap_servers": self._servers,
            "group_id": group,
            "enable_auto_commit": False,
            "plan_topic": f"plans-{side.name}",
        }
        with ExitStack() as stack:
            members = [
                stack.enter_context(
                    KafkaPythonMember([TOPIC], follow=True, client_id=name, **config)
                )
                for name in ("one", "two")
            ]
            until = time.monotonic() + PATIENCE_S
            while sorted(len(member.owned) for member in members) != [PARTITIONS // 2] * 2:
                if time.monotonic() > until:
                    raise TimeoutError(f"{group} does not settle")
                time.sleep(0.05)
            recall(KafkaSettings(bootstrap_servers=self._servers), side.warehouse, group)
            yield group

    @contextmanager
    def _groups(self) -> Iterator[dict[str, str]]:
        with ExitStack() as stack:
            yield {side.name: stack.enter_context(self._group(side)) for side in self.sides}

    def results(self, beside: str | None) -> dict[str, Any]:
        """Return what was measured, medians first."""
        rows = {
            row: {
                "goal_s": GOALS[row],
                **{
                    side: {
                        "median_s": round(statistics.median(one["s"] for one in rounds), 2),
                        "rounds": [rounded(one) for one in rounds],
                    }
                    for side, rounds in self.measured[row].items()
                },
            }
            for row in GOALS
            if row in self.measured
        }
        machine = {"cpus": os.cpu_count(), "python": platform.python_version()}
        return {"machine": machine, "beside": beside, "rows": rows}


def parts(events: list[tuple[str, str | None, float]], began: float) -> dict[str, float]:
    """Return where a run's time went: until it started, and of each step."""
    at = {kind: when for kind, _, when in reversed(events)}
    found = {}
    if "PIPELINE_DEQUEUED" in at:
        found["until dequeued"] = at["PIPELINE_DEQUEUED"] - began
        found["process and imports"] = at["PIPELINE_START"] - at["PIPELINE_DEQUEUED"]
    elif "PIPELINE_START" in at:
        found["process and imports"] = at["PIPELINE_START"] - began
    started = {step: when for kind, step, when in events if kind == "STEP_START" and step}
    for kind, step, when in events:
        if kind == "STEP_SUCCESS" and step in started:
            found[step] = when - started[step]
    return found


def make_topic(servers: str) -> None:
    """Make the topic that all groups read."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(60)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for partition, behind in enumerate(BEHIND):
        for _ in range(CONSUMED + behind):
            producer.produce(TOPIC, b"record", partition=partition)
    producer.flush(60)


def commit(servers: str, group: str) -> None:
    """Let a group have read the beginning of each partition."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    offsets = [TopicPartition(TOPIC, number, CONSUMED) for number in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check a revision out beside this checkout, with an environment of its own; kept for later.

    Raises
    ------
    CalledProcessError
        There is no such revision, or its environment cannot be made.
    """
    found = subprocess.run(
        ["git", "rev-parse", "--short", f"{revision}^{{commit}}"],  # noqa: S607 - git is the user's
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    folder = ROOT / ".fairlead" / "beside" / found.stdout.strip()
    if not folder.exists():
        command = ["git", "worktree", "add", "--detach", str(folder), revision]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["make", "install"], cwd=folder, check=True, capture_output=True)  # noqa: S607 - as above
    yield folder


def rounded(one: dict[str, Any]) -> dict[str, Any]:
    """Round to hundredths of a second."""
    return {key: round(value, 2) for key, value in one.items()}


def show(console: Console, results: dict[str, Any]) -> None:
    """Print what was measured, and where the time goes."""
    sides = [
        name for name in ("now", "before") if any(name in row for row in results["rows"].values())
    ]
    table = Table(title="Seconds, medians", title_justify="left")
    for heading in ("from .. to", *sides, "goal"):
        table.add_column(heading, justify="left" if heading == "from .. to" else "right")
    for name, row in results["rows"].items():
        medians = [f"{row[side]['median_s']:.1f}" if side in row else "" for side in sides]
        table.add_row(name, *medians, f"{row['goal_s']:g}")
    console.print(table)


if __name__ == "__main__":
    main()
