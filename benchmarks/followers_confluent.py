"""What following plans costs a confluent-kafka group at a rebalance.

    python -m benchmarks.followers_confluent

Belongs here: time from the last member's join until everybody is assigned again, on a real broker,
followers and plain range in turns. Does not: the other clients (`followers`).
"""

import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.followers.confluent import PlanConsumer
from fairlead.followers.follower import FollowOptions
from fairlead.plans.document import MemberShare, PlanDocument, record_headers
from fairlead.sandbox.kafka import KafkaBroker

PARTITIONS_EACH = 4


def main(*, members: int = 10, rounds: int = 7) -> dict[str, float]:
    """Measure, print and return medians: seconds of a rebalance, plain and following, and ratio."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        broker = KafkaBroker(Path(folder))
        broker.start()
        stack.callback(broker.stop)
        plain = stack.enter_context(group(broker.bootstrap_servers, members, follow=False))
        follower = stack.enter_context(group(broker.bootstrap_servers, members, follow=True))
        taken = [(plain(), follower()) for _ in range(rounds)]
    plain_s, follower_s = (statistics.median(one) for one in zip(*taken, strict=True))
    ratio = follower_s / plain_s
    print(
        f"confluent-kafka, {members} members, median of {rounds} rebalances: "
        f"range {plain_s:.3f} s, plan {follower_s:.3f} s, {ratio:.2f} times"
    )
    return {"members": members, "plain_s": plain_s, "follower_s": follower_s, "ratio": ratio}


@contextmanager
def group(servers: str, members: int, *, follow: bool) -> Iterator[Callable[[], float]]:
    """Run all members but the last; yield what lets the last one join, measures, and leave."""
    name = uuid.uuid4().hex[:8]
    partitions = members * PARTITIONS_EACH
    topics = [
        NewTopic(name, partitions),
        NewTopic(f"{name}-plans", 1, config={"cleanup.policy": "compact"}),
    ]
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics(topics).values():
        created.result(timeout=30)
    publish(servers, name, members, partitions)
    with ExitStack() as stack:
        others = [
            stack.enter_context(Member(servers, name, f"m{number}", follow=follow))
            for number in range(members - 1)
        ]
        wait_until(lambda: settled(others, partitions))

        def measure() -> float:
            began = time.monotonic()
            with Member(servers, name, f"m{members - 1}", follow=follow) as last:
                everybody = [*others, last]
                wait_until(lambda: settled(everybody, partitions))
                took = max(member.assigned_at for member in everybody) - began
            wait_until(lambda: settled(others, partitions))
            return took

        yield measure


def publish(servers: str, name: str, members: int, partitions: int) -> None:
    """Publish a plan that gives each member as much as range does, but every n-th partition."""
    now = datetime.now(UTC)
    shares = {
        f"m{number}": MemberShare(
            (name,), {name: np.arange(number, partitions, members, dtype=np.int32)}
        )
        for number in range(members)
    }
    plan = PlanDocument(name, 1, "benchmark", "sticky", now, now, None, {name: partitions}, shares)
    producer = Producer({"bootstrap.servers": servers})
    headers = record_headers(plan.to_bytes())
    producer.produce(f"{name}-plans", plan.to_bytes(), key=name, headers=[*headers])
    producer.flush(30)


class Member:
    """A consumer that polls on a thread, and notes when it was assigned what."""

    def __init__(self, servers: str, name: str, client_id: str, *, follow: bool) -> None:
        config = {
            "bootstrap.servers": servers,
            "group.id": name,
            "client.id": client_id,
            "heartbeat.interval.ms": 300,
            "partition.assignment.strategy": "range",
        }
        options = FollowOptions(plan_topic=f"{name}-plans")
        self._consumer = PlanConsumer(config, options=options) if follow else Consumer(config)
        self._consumer.subscribe([name], on_assign=self._assigned, on_revoke=self._revoked)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self.assigned_at = 0.0
        self.owned = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._consumer.poll(0.1)

    def _assigned(self, _: Any, share: list[TopicPartition]) -> None:
        self.assigned_at, self.owned = time.monotonic(), len(share)

    def _revoked(self, *_: Any) -> None:
        self.owned = 0


def settled(members: list[Member], partitions: int) -> bool:
    """Whether members share out all partitions evenly: as range and the plan both do."""
    owned = [member.owned for member in members]
    return sum(owned) == partitions and max(owned) - min(owned) <= PARTITIONS_EACH


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fail after a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the group does not settle")
        time.sleep(0.005)


if __name__ == "__main__":
    main()
