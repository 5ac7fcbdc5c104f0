"""Time from a command or click to its result, on real services: `python -m benchmarks.reaction`.

Belongs here: the timed intervals; printing, and writing reaction.json. Belongs elsewhere: running
commands and Dagster (`installation`), the time after a consumer slows down (`reaction_chain`),
fleets (`fleet`, `fleet_fetch`).

Each round has a new group with twelve partitions and two consumers that follow plans. One consumer
is behind. Samples of the previous twenty minutes are stored first (`tests.recalled`).
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import harness
from benchmarks.consumers import KafkaPythonMember
from benchmarks.harness import Bench
from benchmarks.installation import PATIENCE_S, Event, Installation, cpu_s, installed
from benchmarks.services import create_topics, wait_until
from fairlead.settings import KafkaSettings
from tests.recalled import CONSUMED, recall

RESULTS: Final = Path(__file__).with_name("reaction.json")
PARTS: Final = ("shell", "cold", "warm", "clicks")
PARTITIONS: Final = 12
#: Lag of each partition. If Kafka's range assignor assigns them, the first consumer is behind.
BEHIND: Final = (100, 80, 60, 50, 40, 30, 5, 5, 5, 5, 5, 5)
TOPIC: Final = "records"
SETTINGS: Final = """
discovery.include = ["reaction-*"]

[[policies]]  # nothing arrives any more: the default horizon would be long enough for the backlog
objective = "PT10S"
horizon = "PT30S"
"""
#: Maximum duration of each measurement, in seconds.
GOALS: Final = {
    "planning run, process start to stored plan, cold Spark": 20.0,
    "planning run, process start to stored plan, warm Spark": 8.0,
    "click in the UI to stored plan, warm Spark": 12.0,
    "fairlead plan GROUP --dry-run": 2.0,
    "fairlead groups": 0.6,
    "fairlead --help": 0.3,
}
COLD, WARM, CLICK, DRY_RUN, GROUPS, HELP = GOALS

Round = dict[str, float]


def main() -> None:
    """Measure, print, and write reaction.json."""
    options = harness.parser(__doc__, rounds=5)
    options.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="of it")
    with (
        harness.measuring(options, RESULTS) as bench,
        installed(SETTINGS) as installation,
        ExitStack() as stack,
    ):
        reaction = Reaction(installation, bench)
        only = set(bench.options.only)
        if "shell" in only:
            reaction.shell()
        if "cold" in only:
            installation.spark = "local[*]"
            reaction.planning(COLD)
        if only & {"warm", "clicks"}:
            installation.spark = "auto"
            stack.enter_context(installation.warm_spark())
            bench.log("Spark is warm")
        if "warm" in only:
            reaction.planned()  # not counted: lets Spark compile its code
            reaction.planning(WARM)
        if "clicks" in only:
            reaction.clicks(stack.enter_context(installation.dagster_dev()))
        rows = reaction.rows()
        bench.write({"rows": rows})
        bench.show(
            "Seconds, medians",
            ("from .. to", "seconds", "goal"),
            ((name, f"{row['median_s']:.1f}", f"{row['goal_s']:g}") for name, row in rows.items()),
        )


class Reaction:
    """Runs the measurements, and keeps their figures with the machine's load."""

    def __init__(self, installation: Installation, bench: Bench) -> None:
        self._installation, self._bench = installation, bench
        self._measured: dict[str, list[Round]] = {}
        make_topic(installation.servers)

    def shell(self) -> None:
        """Time the commands that a person waits for."""
        run = self._installation.run
        with self._group() as group:
            self._each(HELP, lambda: run("fairlead", "--help"))
            self._each(GROUPS, lambda: run("fairlead", "groups"))
            self._each(DRY_RUN, lambda: run("fairlead", "plan", group, "--dry-run"))

    def planning(self, row: str) -> None:
        """Time planning runs as the measurement `row`."""
        self._each(row, self.planned)

    def planned(self) -> Round:
        """Time one planning run, started as a separate process."""
        with self._group() as group:
            began, at, spent = time.perf_counter(), time.time(), cpu_s()
            start = self._installation.start
            with start("python", "-m", "orchestration", group):
                states = ("proposed", "approved", "sending", "published")
                stored = self._installation.wait_for_state(group, *states)
            whole = time.perf_counter() - began
        used = {"s": stored - began, "whole_s": whole, "cpu_s": cpu_s() - spent}
        return used | parts(self._installation.events(), at)

    def clicks(self, url: str) -> None:
        """Measure the time from the click in Dagster's UI until the plan is stored."""

        def clicked(planned: str, state: str, job: str, **launch: Any) -> Round:
            began, at = time.perf_counter(), time.time()
            run_id = self._installation.launch(url, job, **launch)
            reached = self._installation.wait_for_state(planned, state)
            self._installation.wait_for_end(run_id)
            return {"s": reached - began, **parts(self._installation.events(run_id), at)}

        def planned() -> Round:
            with self._group() as group:
                self._installation.know(url, group)
                return clicked(group, "proposed", "planning", group=group)

        self._each(CLICK, planned)

    def rows(self) -> dict[str, Any]:
        """Return for each measurement its goal, median and rounds."""
        return {
            row: {
                "goal_s": goal,
                "median_s": harness.median((figures["s"] for figures in self._measured[row]), 2),
                "rounds": harness.rounded(self._measured[row], 2),
            }
            for row, goal in GOALS.items()
            if row in self._measured
        }

    def _each(self, row: str, measure: Callable[[], Round]) -> None:
        for _ in range(self._bench.options.rounds):
            self._note(row, measure())

    def _note(self, row: str, found: Round) -> None:
        self._measured.setdefault(row, []).append(found | {"load": os.getloadavg()[0]})
        self._bench.log(f"{row}: {found['s']:.2f} s")

    @contextmanager
    def _group(self) -> Iterator[str]:
        """Start a group of two consumers, one of them behind; store samples of the time before."""
        group, servers = f"reaction-{uuid.uuid4().hex[:8]}", self._installation.servers
        commit(servers, group)
        config: dict[str, Any] = {
            "bootstrap_servers": servers,
            "group_id": group,
            "enable_auto_commit": False,
        }
        with ExitStack() as stack:
            members = [
                stack.enter_context(
                    KafkaPythonMember([TOPIC], follow=True, client_id=name, **config)
                )
                for name in ("one", "two")
            ]
            wait_until(
                lambda: [len(member.owned) for member in members] == [PARTITIONS // 2] * 2,
                f"{group} settles",
                within_s=PATIENCE_S,
            )
            recall(KafkaSettings(bootstrap_servers=servers), self._installation.warehouse, group)
            yield group


def parts(events: Sequence[Event], began: float) -> dict[str, float]:
    """Return the seconds from `began` until the run started, and the duration of each step."""
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
    """Create the topic that all groups read."""
    create_topics(servers, {TOPIC: PARTITIONS})
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for partition, behind in enumerate(BEHIND):
        for _ in range(CONSUMED + behind):
            producer.produce(TOPIC, b"record", partition=partition)
    producer.flush(60)


def commit(servers: str, group: str) -> None:
    """Commit offsets near the beginning of all partitions for a group."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    offsets = [TopicPartition(TOPIC, number, CONSUMED) for number in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    main()
