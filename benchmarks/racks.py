"""Cross-rack traffic of each assignor, counted by the brokers: `python -m benchmarks.racks`.

Belongs here: three brokers in three racks, groups that read equal topics one after the other, and
the report. Belongs elsewhere: reading brokers' metrics (BrokerBytes.java).

Each broker has one listener per consumer rack, and counts the bytes that it sends over each
listener. Replicas are in two of the three racks, and brokers direct consumers to the replica in
their rack (KIP-392). Members join before records are produced, and every group reads the same
number of records to the end. So the figures are totals that do not depend on clocks and load.

The group that follows plans begins with the assignment of `uniform`, the default of the assignors
in Kafka's brokers. `uniform` ignores racks. Then the group follows a plan under the policy
`racks = "prefer"`. A plan needs 20 minutes of history. Therefore, earlier samples are made up, with
the arrivals of the first round.
"""

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import harness
from benchmarks.consumers import WAIT_S, Member
from benchmarks.harness import Bench
from benchmarks.plans import document, publish
from benchmarks.services import folder, wait_until
from fairlead.archive import SampleArchive
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.policy import Policy
from fairlead.domain.records import Decision, PlanDraft
from fairlead.domain.samples import SAMPLES, new_snapshot_id
from fairlead.followers.confluent import PlanConsumer
from fairlead.followers.core.follower import FollowOptions
from fairlead.kafka.fetch_sources import RACK_AWARE, SELECTOR
from fairlead.kafka.gateway import KafkaGateway
from fairlead.sandbox.java import find_java
from fairlead.sandbox.plugin import compile_java
from fairlead.settings import KafkaSettings
from fairlead.wire.document import PlanDocument
from fairlead.workflows.planning_one_group import plan_group
from tests.cluster import KafkaCluster

RESULTS: Final = Path(__file__).with_name("racks.json")
RACKS: Final = ("r1", "r2", "r3")
#: The rack of each member of a group. Every rack has two members.
MEMBERS: Final = (*RACKS, *RACKS)
#: Topic -> (number of partitions, number of records per partition in a round).
TOPICS: Final = {"clicks": (12, 900), "orders": (7, 600), "audit": (5, 300)}
RECORDS: Final = sum(partitions * records for partitions, records in TOPICS.values())
BYTES: Final = 1_000
#: Replicas of partitions 0, 1 and 2, the leader first; further partitions repeat these.
REPLICAS: Final = ([1, 2], [2, 3], [3, 1])
SETTLING_S: Final = 3.0
PLANS: Final = "racks-plans"
TIMES: Final = 20
GROUPS: Final[dict[str, dict[str, str]]] = {
    "range": {"partition.assignment.strategy": "range"},
    "cooperative-sticky": {"partition.assignment.strategy": "cooperative-sticky"},
    "uniform": {"group.protocol": "consumer", "group.remote.assignor": "uniform"},
    "plans": {},
}
FOLLOWING: Final = "plans"

Owned = frozenset[tuple[str, int]]


def topics_of(group: str) -> dict[str, tuple[int, int]]:
    """Return the topics that only this group reads: copies of `TOPICS` with names of their own."""
    return {f"{group}-{name}": shape for name, shape in TOPICS.items()}


@dataclass(frozen=True)
class Reading:
    """The traffic of the brokers while a group read all records once.

    Parameters
    ----------
    assigned_by
        The assignor, or for the group with plans, the current plan.
    sent, between
        Bytes sent to all consumers, and to consumers in another rack.
    busiest
        Number of records read by the busiest member, divided by the mean of all members.
    moved
        Number of partitions that the current plan moved; 0 without a plan.
    """

    assigned_by: str
    sent: int
    between: int
    busiest: float
    moved: int = 0


class RackMember(Member):
    """A librdkafka consumer that is in a rack, and connects to the listener for this rack."""

    def __init__(self, servers: str, group: str, number: int) -> None:
        super().__init__()
        self.name, self.group, self.read = f"c{number}", group, 0
        self._owned: Owned = frozenset()
        self._topics = list(topics_of(group))
        settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": self.name,
            "client.rack": MEMBERS[number],
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            **GROUPS[group],
        }
        options = FollowOptions(plan_topic=PLANS, rejoin_jitter_s=0.5)
        follows = group == FOLLOWING
        self._consumer = PlanConsumer(settings, options=options) if follows else Consumer(settings)

    def _join(self) -> None:
        self._consumer.subscribe(self._topics)
        super()._join()

    @property
    def owned(self) -> Owned:
        """Return the assigned partitions."""
        return self._owned

    def _run(self) -> None:
        while not self._stopping.is_set():
            fetched = self._consumer.consume(500, WAIT_S)
            self.read += sum(message.error() is None for message in fetched)
            mine = self._consumer.assignment()
            self._owned = frozenset((partition.topic, partition.partition) for partition in mine)
        self._consumer.close()


class Traffic:
    """Counts the bytes that a cluster's brokers send to consumers between two calls of `since`."""

    def __init__(self, cluster: KafkaCluster, folder: Path) -> None:
        processes = [broker.process() for broker in cluster.brokers.values()]
        pids = [str(process.pid) for process in processes if process]
        compile_java([Path(__file__).with_name("BrokerBytes.java")], [folder], folder, release=17)
        self._command = [str(find_java()), "-cp", str(folder), "BrokerBytes", *pids]
        self._before = self._now()

    def since(self) -> tuple[int, int]:
        """Return the bytes sent since the last call: all, and those to another rack."""
        before, self._before = self._before, self._now()
        sent = {key: self._before[key] - before[key] for key in before}
        return sum(sent.values()), sum(b for (of, to), b in sent.items() if of != to)

    def _now(self) -> dict[tuple[str, str], int]:
        """Read the metrics; map a pair (rack of the broker, rack of the consumers) to bytes."""
        done = subprocess.run(self._command, capture_output=True, text=True, check=True, timeout=60)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return {
            (of, to): int(sent[to.upper()])
            for of, sent in zip(RACKS, lines, strict=True)
            for to in RACKS
        }


class Measured:
    """Runs the groups on a cluster and measures them."""

    def __init__(self, cluster: KafkaCluster, place: Path, bench: Bench) -> None:
        self._cluster, self._place, self._bench = cluster, place, bench
        self._kafka = KafkaSettings(bootstrap_servers=cluster.bootstrap_servers)
        self._producer = Producer(self._kafka.librdkafka())
        self._traffic = Traffic(cluster, place)

    def create_topics(self) -> None:
        """Create the topics of all groups, and the plan topic."""
        every = {PLANS: 1}
        for group in GROUPS:
            every |= {name: partitions for name, (partitions, _) in topics_of(group).items()}
        topics = [
            NewTopic(
                name,
                num_partitions=count,
                replica_assignment=list(islice(cycle(REPLICAS), count)),  # type: ignore[arg-type] # the stubs say names; numbers it is
                config={"min.insync.replicas": "1"},
            )
            for name, count in every.items()
        ]
        admin = AdminClient(self._kafka.librdkafka())
        for made in admin.create_topics(topics).values():
            made.result(60)

    def measure(self) -> Iterator[Reading]:
        """Let each group read a round of records. Then the last group reads one under a plan."""
        for name in ("range", "cooperative-sticky", "uniform"):
            with self._group(name) as members:
                yield self._read(name, members)
                dealt = {member.name: member.owned for member in members}
        with self._group(FOLLOWING) as members:
            self._follow(members, as_dealt(dealt))
            yield self._read("as uniform dealt", members)
            decision = self._decide()
            self._bench.log(f"{decision.outcome}: {decision.reason}")
            if isinstance(decision, PlanDraft):
                self._follow(members, decision.document(2, uuid4(), datetime.now(UTC)))
                yield self._read("the plan", members, decision.moves.num_rows)

    def _follow(self, members: Sequence[RackMember], plan: PlanDocument) -> None:
        """Publish a plan, and wait until the members follow it."""
        publish(self._cluster.bootstrap_servers, PLANS, plan)
        wanted = {
            name: {
                (topic, int(number)) for topic, mine in share.partitions.items() for number in mine
            }
            for name, share in plan.members.items()
        }
        wait_until(
            lambda: all(member.owned == wanted[member.name] for member in members),
            f"version {plan.version} is followed",
        )
        time.sleep(SETTLING_S)

    @contextmanager
    def _group(self, name: str) -> Iterator[list[RackMember]]:
        with ExitStack() as stack:
            members = [
                RackMember(self._cluster.servers_of[rack.upper()], name, number)
                for number, rack in enumerate(MEMBERS)
            ]
            for member in members:
                stack.enter_context(member)
            for _ in range(2):  # twice, since a new member needs time to choose a replica
                wait_until(lambda: self._is_shared_out(members), f"{name} settles")
                time.sleep(SETTLING_S)
            yield members

    def _is_shared_out(self, members: Sequence[RackMember]) -> bool:
        total = sum(partitions for partitions, _ in TOPICS.values())
        shares = [len(member.owned) for member in members]
        return sum(shares) == total and all(shares)

    def _read(self, assigned_by: str, members: Sequence[RackMember], moved: int = 0) -> Reading:
        """Produce the records of a round, and let the group read them."""
        read = [member.read for member in members]
        self._traffic.since()
        for topic, (partitions, records) in topics_of(members[0].group).items():
            for partition in range(partitions):
                for _ in range(records):
                    self._producer.produce(topic, bytes(BYTES), partition=partition)
                self._producer.poll(0)
        self._producer.flush(60)
        wait_until(
            lambda: sum(member.read for member in members) >= sum(read) + RECORDS, "all is read"
        )
        sent, between = self._traffic.since()
        shares = [member.read - before for member, before in zip(members, read, strict=True)]
        busiest = max(shares) * len(shares) / sum(shares)
        return Reading(assigned_by, sent, between, round(busiest, 2), moved)

    def _decide(self) -> Decision:
        archive = SampleArchive(str(self._place / "samples"))
        with KafkaGateway(self._kafka) as gateway:
            wait_until(lambda: self._committed(gateway), "everything is committed")
            samples = gateway.snapshot([FOLLOWING]).samples
            archive.append(history(samples), new_snapshot_id(samples["at"][0].as_py()))
            planned = plan_group(
                gateway,
                archive,
                FOLLOWING,
                policies=[Policy(racks="prefer")],
                memory=GroupMemories(),
                now=datetime.now(UTC),
            )
        return planned.decision

    def _committed(self, gateway: KafkaGateway) -> bool:
        sample = gateway.snapshot([FOLLOWING]).samples
        return bool(sample["end"] == sample["committed"])


def as_dealt(owned: Mapping[str, Owned]) -> PlanDocument:
    """Return a plan that gives the group `FOLLOWING` the same assignment as the group `uniform`.

    `owned` maps the name of each member of `uniform` to its partitions. The members of both groups
    have equal names, and each group has its own copies of the topics.
    """
    topics = topics_of(FOLLOWING)
    alike = dict(zip(topics_of("uniform"), topics, strict=True))
    shares: dict[str, dict[str, list[int]]] = {name: {} for name in owned}
    for name, mine in owned.items():
        for topic, partition in sorted(mine):
            shares[name].setdefault(alike[topic], []).append(partition)
    return document(FOLLOWING, {name: shape[0] for name, shape in topics.items()}, shares)


def history(newest: pa.Table) -> pa.Table:
    """Return made-up samples before a sample, a minute apart, with equal arrivals between them."""
    rows = []
    for back in range(1, TIMES):
        (row,) = newest.to_pylist()
        row["at"] -= back * timedelta(minutes=1)
        row["end"] = [
            end - (end - begin) * back // TIMES
            for begin, end in zip(row["begin"], row["end"], strict=True)
        ]
        rows.append(row | {"committed": row["end"]})
    return pa.Table.from_pylist(rows[::-1], SAMPLES)


def main() -> None:
    """Measure, print the table and write the figures."""
    settings = [{"broker.rack": rack, SELECTOR: RACK_AWARE} for rack in RACKS]
    listeners = [rack.upper() for rack in RACKS]
    with (
        harness.measuring(harness.parser(__doc__), RESULTS) as bench,
        folder() as place,
        KafkaCluster(place, settings=settings, listeners=listeners) as cluster,
    ):
        measured = Measured(cluster, place, bench)
        measured.create_topics()
        readings = [*measured.measure()]
        bench.write({"rows": [asdict(reading) for reading in readings]})
        bench.show(
            "Sent to consumers while each group reads the same",
            ("assigned by", "MB in all", "MB between racks", "share", "busiest", "moved"),
            (
                (
                    *(
                        reading.assigned_by,
                        f"{reading.sent / 1e6:.1f}",
                        f"{reading.between / 1e6:.1f}",
                    ),
                    *(
                        f"{reading.between / reading.sent:.1%}",
                        f"{reading.busiest:.2f}",
                        reading.moved,
                    ),
                )
                for reading in readings
            ),
        )


if __name__ == "__main__":
    main()
