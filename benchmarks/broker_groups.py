"""What many groups under the assignor `fairlead` cost a broker, beside Kafka's own `uniform`.

`python -m benchmarks.broker_groups`

Two brokers at once, one with the jar in it and one without; on each as many groups of one plain
confluent-kafka consumer. They rest for a minute; then a wave comes over both: each group's plan and
members are published, and a rebalance trigger joins each group and leaves it. The same records and rebalance triggers go to
the broker without the jar, where nobody reads them, so that the difference is the jar's.

Belongs here: the two brokers, the wave, the CPU time and memory of their processes; printing, and
writing broker_groups.json. Does not: the consumers (`broker_members`).
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from benchmarks import harness
from benchmarks.broker_members import Members, Seat
from benchmarks.plans import document
from benchmarks.services import create_topics, folder, kafka
from fairlead.kafka.consumer_protocol import ASSIGNOR
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.members_topic import MembersTopic
from fairlead.kafka.plan_channel import Outgoing
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.kafka.rebalance_trigger import RebalanceTrigger, TriggerConnection
from fairlead.sandbox.jars import kafka_classpath
from fairlead.sandbox.java import find_java
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.plugin import compile_java, plugin_jar
from fairlead.settings import KafkaSettings
from fairlead.wire.record import plan_headers
from fairlead.workflows.following import AT_ONCE, send_members
from tests.jvm.asking import answering
from tests.jvm.remote import shown

RESULTS: Final = Path(__file__).with_suffix(".json")
TOPIC: Final = "read-by-all"
PARTITIONS: Final = 2
PROCESSES: Final = 2  # of consumers, for each broker
CHECKS: Final = sorted((Path(__file__).parents[1] / "tests" / "jvm").glob("*.java"))


@dataclass(frozen=True)
class Side:
    """One of the brokers.

    Parameters
    ----------
    assignor
        Which its groups ask for.
    broker
        It, running.
    seats
        Its groups' consumers.
    """

    assignor: str
    broker: KafkaBroker
    seats: Sequence[Seat]

    @property
    def settings(self) -> KafkaSettings:
        """How to reach it."""
        return KafkaSettings(bootstrap_servers=self.broker.bootstrap_servers)

    @property
    def process(self) -> psutil.Process:
        """Its process."""
        process = self.broker.process()
        if process is None:
            raise RuntimeError(f"the broker of {self.assignor} has ended: see {self.broker.log}")
        return process

    def cpu_s(self) -> float:
        """Return the seconds of CPU that its process has had."""
        times = self.process.cpu_times()
        return times.user + times.system

    def memory(self) -> dict[str, float]:
        """Collect its garbage; return what is left on the heap, and the process's memory, in MB."""
        self._jcmd("GC.run")
        heap = [line for line in self._jcmd("GC.heap_info").splitlines() if " generation" in line]
        used = [int(line.partition("used ")[2].partition("K")[0]) for line in heap]
        return {
            "heap_mb": round(sum(used) / 1024, 1),
            "process_mb": round(self.process.memory_info().rss / 2**20),
        }

    def _jcmd(self, what: str) -> str:
        command = [str(find_java().with_name("jcmd")), str(self.process.pid), what]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Wave:
    """A plan, its members and a rebalance trigger for each group of a broker."""

    def __init__(self, side: Side) -> None:
        self._groups = [seat.group for seat in side.seats]
        self._names = {seat.group: seat.name for seat in side.seats}
        self._settings = side.settings

    def prepare(self) -> None:
        """Make the planner's topics."""
        with PlanTopic(self._settings) as plans:
            plans.ensure()
        MembersTopic(self._settings).ensure()

    def run(self) -> float:
        """Let it come over the groups; returns the seconds it took."""
        began = time.monotonic()
        with (
            PlanTopic(self._settings) as plans,
            KafkaGateway(self._settings) as gateway,
            TriggerConnection(self._settings) as connection,
        ):
            topics = gateway.topics_of([TOPIC])
            self._publish(plans, topics[TOPIC][0])
            found = gateway.broker_groups(self._groups)
            as_if = {
                group: replace(described, assignor=ASSIGNOR) for group, described in found.items()
            }
            if said := send_members(MembersTopic(self._settings), as_if, topics):
                raise RuntimeError(said)
            for first in range(0, len(self._groups), AT_ONCE):
                self._trigger(gateway, connection, self._groups[first : first + AT_ONCE])
        return time.monotonic() - began

    def _publish(self, plans: PlanTopic, topic_id: str) -> None:
        by_partition: dict[int, list[Outgoing]] = {}
        for group in self._groups:
            by_partition.setdefault(plans.partition_for_key(group), []).append(
                self._record(plans, group, topic_id)
            )
        for partition, records in by_partition.items():
            with plans.open(partition) as channel:
                refused = [
                    answer for answer in channel.send(records).values() if isinstance(answer, str)
                ]
            if refused:
                raise RuntimeError(refused[0])

    def _record(self, plans: PlanTopic, group: str, topic_id: str) -> Outgoing:
        now = datetime.now(UTC)
        value = document(
            group,
            {TOPIC: PARTITIONS},
            {self._names[group]: {TOPIC: range(PARTITIONS)}},
            weights={TOPIC: np.ones(PARTITIONS)},
            topic_ids={TOPIC: topic_id},
        ).to_bytes()
        headers = plan_headers(
            value,
            group=group,
            version=1,
            origin=plans.origin,
            epoch=1,
            lease_until=now + timedelta(hours=6),
        )
        return Outgoing(group, value, headers)

    def _trigger(
        self, gateway: KafkaGateway, connection: TriggerConnection, groups: Sequence[str]
    ) -> None:
        triggers = [RebalanceTrigger(self._settings, group, 1, by=connection) for group in groups]
        for trigger in triggers:
            trigger.join()
        found = gateway.broker_groups(groups)
        if not all(any(m.is_trigger for m in described.members) for described in found.values()):
            raise RuntimeError("rebalance triggers did not join")
        for trigger in triggers:
            trigger.leave()


def main() -> None:
    """Measure, print, and write broker_groups.json."""
    options = harness.parser(__doc__)
    options.add_argument("--groups", type=int, default=1_000)
    options.add_argument("--seconds", type=int, default=60, help="at rest")
    with harness.measuring(options, RESULTS) as bench, ExitStack() as stack:
        groups = bench.options.groups
        sides = [stack.enter_context(_started(name, groups)) for name in ("uniform", ASSIGNOR)]
        figures = measure(sides, bench.options.seconds, stack)
        with folder() as place:
            figures["assignor_shows"] = _shown(sides[1].broker, place)
        figures |= {"groups": groups, "partitions_each": PARTITIONS}
        bench.write(figures)
        bench.show(f"{groups:,} groups", ("what", "figures"), figures.items())


@contextmanager
def _started(assignor: str, groups: int) -> Iterator[Side]:
    """Run a broker with stock heartbeats, for groups of an assignor."""
    heartbeat = {"group.consumer.heartbeat.interval.ms": "5000"}
    seats = [Seat(f"group-{n:04}", f"consumer-{n:04}", TOPIC) for n in range(groups)]
    with kafka(assignor=assignor == ASSIGNOR, settings=heartbeat) as broker:
        create_topics(broker.bootstrap_servers, {TOPIC: PARTITIONS})
        yield Side(assignor, broker, seats)


def measure(sides: Sequence[Side], seconds: int, stack: ExitStack) -> dict[str, Any]:
    """Let both rest, and let a wave come over both; what the processes took."""
    waves = [Wave(side) for side in sides]
    for wave in waves:
        wave.prepare()
    empty = {side.assignor: side.memory() for side in sides}
    everybody = [
        stack.enter_context(
            Members(
                side.settings.bootstrap_servers,
                side.seats,
                processes=PROCESSES,
                config={"group.remote.assignor": side.assignor},
            )
        )
        for side in sides
    ]
    for side, members in zip(sides, everybody, strict=True):
        members.until({seat: set(range(PARTITIONS)) for seat in side.seats})
    at_rest = {side.assignor: side.memory() for side in sides}
    resting = _cpu_of(sides, lambda: time.sleep(seconds))
    with ThreadPoolExecutor(len(waves)) as pool:
        took: list[float] = []
        passing = _cpu_of(sides, lambda: took.extend(pool.map(Wave.run, waves)))
    after = {side.assignor: side.memory() for side in sides}
    return {
        "seconds_at_rest": seconds,
        "cpu_s_at_rest": resting,
        "seconds_of_the_wave": dict(
            zip((side.assignor for side in sides), (round(s, 1) for s in took), strict=True)
        ),
        "cpu_s_of_the_wave": passing,
        "memory_without_groups": empty,
        "memory_at_rest": at_rest,
        "memory_after_the_wave": after,
    }


def _cpu_of(sides: Sequence[Side], what: Callable[[], object]) -> dict[str, float]:
    before = {side.assignor: side.cpu_s() for side in sides}
    what()
    return {side.assignor: round(side.cpu_s() - before[side.assignor], 2) for side in sides}


def _shown(broker: KafkaBroker, classes: Path) -> dict[str, Any]:
    """Return what the assignor shows by JMX."""
    jars = [plugin_jar(), *kafka_classpath()]
    compile_java(CHECKS, jars, classes, release=17)
    with answering(os.pathsep.join(map(str, [classes, *jars]))) as checks:
        found = shown(broker, checks)
    names = ("Calls", "CallsMs", "LongestCallMs", "Failures", "Plans", "Rosters", "Outcomes")
    return {name: found[name] for name in names}


if __name__ == "__main__":
    main()
