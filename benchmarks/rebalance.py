"""Duration of a rebalance with plans, compared with `range`: `python -m benchmarks.rebalance`.

Belongs here: the time from the last member's join until every partition is assigned, on a real
broker, alternately for plan followers and plain consumers. Belongs elsewhere: the benefit of plans
(`drain`).
"""

import random
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

from benchmarks import harness
from benchmarks.consumers import CLIENTS, MEMBERS, Client, Member
from benchmarks.harness import in_turns
from benchmarks.plans import document, publish
from benchmarks.services import create_topics, kafka, wait_until
from fairlead.wire.document import PlanDocument

RESULTS = Path(__file__).with_name("rebalance.json")
PARTITIONS_EACH = 4
#: Seconds between two heartbeats in the group. All members are in one process, so the interval of
#: each member is `HEARTBEAT_S` times the number of members. Members learn of a join at their next
#: heartbeat, so a short interval makes the time of the other steps visible.
HEARTBEAT_S = 0.005
GOALS: dict[Client, float] = {"kafka-python": 1.3, "aiokafka": 1.3, "confluent-kafka": 2.0}


@dataclass(frozen=True)
class Cost:
    """Durations of the rebalance after the last member joins.

    Parameters
    ----------
    client, members
        The client library, and the number of members including the last one.
    plain_s, follower_s
        Medians over the rounds, in seconds.
    ratio
        `follower_s`, divided by `plain_s`.
    """

    client: Client
    members: int
    plain_s: float
    follower_s: float
    ratio: float


def measure(
    servers: str, client: Client, members: int, *, rounds: int, heartbeat_s: float | None = None
) -> Cost:
    """Let a last member join and leave two groups in turn: one without plans, one with plans."""
    heartbeat_s = heartbeat_s or members * HEARTBEAT_S
    with ExitStack() as stack:
        plain, following = (
            stack.enter_context(group(servers, client, members, heartbeat_s, follow=follow))
            for follow in (False, True)
        )
        taken = in_turns(rounds, lambda _: plain(), lambda _: following())
    plain_s, follower_s = map(statistics.median, taken)
    return Cost(client, members, plain_s, follower_s, follower_s / plain_s)


@contextmanager
def group(
    servers: str, client: Client, members: int, heartbeat_s: float, *, follow: bool
) -> Iterator[Callable[[], float]]:
    """Run all members except the last; yield a function that times one join of the last member."""
    name = uuid.uuid4().hex[:8]
    count = members * PARTITIONS_EACH
    create_topics(servers, {name: count, f"{name}-plans": 1})
    publish(servers, f"{name}-plans", plan(name, members, count))
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
            # As in real groups, let members join, and so send heartbeats, at different moments.
            time.sleep(heartbeat_s / members)
        wait_until(lambda: settled(others, everything), "the group settles")

        def join() -> float:
            last = member(members - 1)
            # Members learn of a join at their next heartbeat. Therefore, join at a random moment.
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
    """Return the settings of one consumer, under the names that its client uses."""
    found: dict[str, Any] = {
        "bootstrap_servers": servers,
        "group_id": name,
        "client_id": f"c{number}",
        "heartbeat_interval_ms": int(1000 * heartbeat_s),
    }
    if follow:
        found["plan_topic"] = f"{name}-plans"
    if client == "confluent-kafka":
        # librdkafka sends a due heartbeat only when a timer fires. Without this setting, timers
        # fire only twice a second.
        found["auto_commit_interval_ms"] = found["heartbeat_interval_ms"]
        return found | {"partition_assignment_strategy": "range"}
    plain = {"kafka-python": KafkaPythonRange, "aiokafka": AiokafkaRange}[client]
    return found | (
        {"rejoin_jitter_s": None} if follow else {"partition_assignment_strategy": (plain,)}
    )


def settled(members: list[Member], everything: set[tuple[str, int]]) -> bool:
    """Return whether every partition has exactly one owner."""
    shares = [member.owned for member in members]
    return sum(map(len, shares)) == len(everything) and set().union(*shares) == everything


def plan(name: str, members: int, count: int) -> PlanDocument:
    """Return a plan that gives members as many partitions as `range` does, but different ones."""
    owned = {f"c{number}": {name: range(number, count, members)} for number in range(members)}
    return document(name, {name: count}, owned)


def main() -> None:
    """Measure all clients with 10 and 50 members; print the table and write the figures."""
    options = harness.parser(__doc__, rounds=11)
    options.add_argument("--members", type=int, nargs="*", default=[10, 50])
    with harness.measuring(options, RESULTS) as bench, kafka() as broker:
        costs = []
        for client, members in product(CLIENTS, bench.options.members):
            bench.log(f"{client}, {members} members")
            costs.append(
                measure(broker.bootstrap_servers, client, members, rounds=bench.options.rounds)
            )
        bench.write({"rows": [asdict(cost) for cost in costs]})
        bench.show(
            "Rebalance, last join to all assigned: medians",
            ("client", "members", "range, s", "plans, s", "ratio", "goal"),
            (
                (
                    *(
                        measured.client,
                        measured.members,
                        f"{measured.plain_s:.3f}",
                        f"{measured.follower_s:.3f}",
                    ),
                    *(f"{measured.ratio:.2f}", f"{GOALS[measured.client]:.1f}"),
                )
                for measured in costs
            ),
        )


if __name__ == "__main__":
    main()
