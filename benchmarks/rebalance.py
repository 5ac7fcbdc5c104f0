"""What following plans costs at a rebalance, beside plain range: `python -m benchmarks.rebalance`.

Belongs here: time from the last member's join until every partition is assigned, on a real broker,
followers and plain consumers in turns. Does not: what plans are good for (`drain`).
"""

import json
import logging
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from rich.console import Console
from rich.table import Table

from benchmarks.consumers import CLIENTS, MEMBERS, Client, Member, wait_until
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.wire.record import Origin, plan_headers

RESULTS = Path(__file__).with_name("rebalance.json")
PARTITIONS_EACH = 4
#: Between two heartbeats, for each member of the group, as all of them beat in one process. The
#: others hear of a join by their next heartbeat, so short ones show what the rest takes.
HEARTBEAT_S = 0.005
GOALS: dict[Client, float] = {"kafka-python": 1.3, "aiokafka": 1.3, "confluent-kafka": 2.0}


@dataclass(frozen=True)
class Cost:
    """How long a rebalance takes.

    Parameters
    ----------
    client, members
        Which client library, and how many members once the last one has joined.
    plain_s, follower_s
        Medians over the rounds, in seconds.
    ratio
        Of the two.
    """

    client: Client
    members: int
    plain_s: float
    follower_s: float
    ratio: float


def measure(
    servers: str, client: Client, members: int, *, rounds: int, heartbeat_s: float | None = None
) -> Cost:
    """Let the last member join and leave again and again, without plans and with them in turns."""
    heartbeat_s = heartbeat_s or members * HEARTBEAT_S
    with ExitStack() as stack:
        plain, following = (
            stack.enter_context(group(servers, client, members, heartbeat_s, follow=follow))
            for follow in (False, True)
        )
        taken = [(plain(), following()) for _ in range(rounds)]
    plain_s, follower_s = (statistics.median(one) for one in zip(*taken, strict=True))
    return Cost(client, members, plain_s, follower_s, follower_s / plain_s)


@contextmanager
def group(
    servers: str, client: Client, members: int, heartbeat_s: float, *, follow: bool
) -> Iterator[Callable[[], float]]:
    """Run all members but the last; yield what lets that one join, measures, and leave."""
    name = uuid.uuid4().hex[:8]
    count = members * PARTITIONS_EACH
    create_topics(servers, {name: count, f"{name}-plans": 1})
    publish(servers, name, members, count)
    everything = {(name, number) for number in range(count)}

    def member(number: int) -> Any:
        return MEMBERS[client](
            [name],
            follow=follow,
            **config(servers, client, name, number, heartbeat_s, follow=follow),
        )

    rng = random.Random(name)
    with ExitStack() as stack:
        others = []
        for number in range(members - 1):
            others.append(stack.enter_context(member(number)))
            # Consumers of different processes do not beat in step; followers take longer to start.
            time.sleep(heartbeat_s / members)
        wait_until(lambda: settled(others, everything), "the group settles")

        def join() -> float:
            last = member(members - 1)
            # The others hear of it by their next heartbeat: join anywhere between two of them.
            time.sleep(rng.uniform(0, heartbeat_s))
            with last:
                everybody = [*others, last]
                wait_until(
                    lambda: bool(last.owned) and settled(everybody, everything), "all are assigned"
                )
                took: float = time.perf_counter() - last.joined_at
            wait_until(lambda: settled(others, everything), "the others settle")
            return took

        yield join


def config(
    servers: str, client: Client, name: str, number: int, heartbeat_s: float, *, follow: bool
) -> dict[str, Any]:
    """Return the settings of one consumer, in the client's own words."""
    found: dict[str, Any] = {
        "bootstrap_servers": servers,
        "group_id": name,
        "client_id": f"c{number}",
        "heartbeat_interval_ms": int(1000 * heartbeat_s),
    }
    if follow:
        found["plan_topic"] = f"{name}-plans"
    if client == "confluent-kafka":
        # librdkafka looks whether a heartbeat is due when a timer of its wakes it: twice a second
        # but for this one.
        found["auto_commit_interval_ms"] = found["heartbeat_interval_ms"]
        return found | {"partition_assignment_strategy": "range"}
    plain = {"kafka-python": KafkaPythonRange, "aiokafka": AiokafkaRange}[client]
    return found | (
        {"rejoin_jitter_s": None} if follow else {"partition_assignment_strategy": (plain,)}
    )


def settled(members: list[Member], everything: set[tuple[str, int]]) -> bool:
    """Whether members share out all partitions, each to one of them."""
    shares = [member.owned for member in members]
    return sum(map(len, shares)) == len(everything) and set().union(*shares) == everything


def create_topics(servers: str, counts: dict[str, int]) -> None:
    """Create topics of so many partitions."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(name, count) for name, count in counts.items()]
    for created in admin.create_topics(topics).values():
        created.result(timeout=60)


def publish(servers: str, name: str, members: int, count: int) -> None:
    """Publish a plan that gives each member as much as range does, but every n-th partition."""
    now = datetime.now(UTC)
    shares = {
        f"c{number}": MemberShare(
            (name,), {name: np.arange(number, count, members, dtype=np.int32)}
        )
        for number in range(members)
    }
    plan = PlanDocument(name, 1, "benchmark", "roundrobin", now, now, {name: count}, shares)
    value = plan.to_bytes()
    producer = Producer({"bootstrap.servers": servers})
    topic = f"{name}-plans"
    headers = plan_headers(
        value, group=name, version=1, origin=Origin(topic), epoch=1, lease_until=None
    )
    producer.produce(topic, value, key=name, headers=[*headers])
    producer.flush(30)


def main() -> None:
    """Measure all clients with 10 and 50 members; print the table and keep the figures."""
    sizes = [int(size) for size in sys.argv[1:]] or [10, 50]
    logging.disable(logging.WARNING)  # clients that meet a topic on its first second
    console = Console()
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder))
        broker.start()
        try:
            for client in CLIENTS:
                for members in sizes:
                    console.log(f"{client}, {members} members")
                    costs.append(measure(broker.bootstrap_servers, client, members, rounds=11))
        finally:
            broker.stop()
    RESULTS.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n")
    table = Table(title="Rebalance, last join to all assigned: medians", title_justify="left")
    for heading in ("client", "members", "range, s", "plans, s", "ratio", "goal"):
        table.add_column(heading, justify="left" if heading == "client" else "right")
    for cost in costs:
        seconds = (f"{cost.plain_s:.3f}", f"{cost.follower_s:.3f}")
        goal = f"{GOALS[cost.client]:.1f}"
        table.add_row(cost.client, str(cost.members), *seconds, f"{cost.ratio:.2f}", goal)
    console.print(table)


if __name__ == "__main__":
    main()
