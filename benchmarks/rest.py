"""What following plans costs while nothing happens: `python -m benchmarks.rest`.

Belongs here: the CPU of a process of confluent-kafka's followers beside one of plain consumers,
over the same seconds. Does not: what a rebalance costs (`rebalance`).
"""

import multiprocessing
import statistics
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer

from benchmarks import harness
from benchmarks.plans import publish
from benchmarks.rebalance import PARTITIONS_EACH, plan
from benchmarks.services import create_topics, kafka, wait_until
from fairlead.followers.confluent import PlanConsumer
from fairlead.followers.core.follower import FollowOptions

RESULTS: Final = Path(__file__).with_name("rest.json")
#: After the last rebalance, until what it has left behind is over.
_SETTLE_S: Final = 15.0
_GOAL: Final = 2.0


@contextmanager
def members(servers: str, count: int, *, follow: bool) -> Iterator[int]:
    """Run a group of so many members in a process of its own; yield its id once they own all."""
    spawn = multiprocessing.get_context("spawn")
    group, stopping, owned = uuid.uuid4().hex[:8], spawn.Event(), spawn.Value("i", 0)
    partitions = count * PARTITIONS_EACH
    create_topics(servers, {group: partitions, f"{group}-plans": 1})
    publish(servers, f"{group}-plans", plan(group, count, partitions))
    kind = {"follow": follow, "stopping": stopping, "owned": owned}
    process = spawn.Process(target=_run, args=(servers, group, count), kwargs=kind)
    process.start()
    try:
        wait_until(lambda: owned.value == partitions, "the group settles")
        assert process.pid is not None  # noqa: S101 - it has started
        yield process.pid
    finally:
        stopping.set()
        process.join()


def _run(
    servers: str,
    group: str,
    count: int,
    *,
    follow: bool,
    stopping: Event,
    owned: "Synchronized[int]",
) -> None:
    """Poll with each member on a thread of its own."""

    def member(number: int) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": f"c{number}",
            "partition.assignment.strategy": "range",
        }
        options = FollowOptions(plan_topic=f"{group}-plans")
        consumer = PlanConsumer(settings, options=options) if follow else Consumer(settings)
        consumer.subscribe(
            [group],
            on_assign=lambda _, share: add(len(share)),
            on_revoke=lambda _, share: add(-len(share)),
        )
        while not stopping.is_set():
            consumer.poll(1.0)
        consumer.close()

    def add(partitions: int) -> None:
        with owned.get_lock():
            owned.value += partitions

    threads = [threading.Thread(target=member, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _cpu_s(process: int) -> float:
    """Return the CPU time that a process has taken."""
    return time.clock_gettime((~process << 3) | 2)  # Linux: its clock, by its id


def main() -> None:
    """Measure in rounds; print the table and keep the figures."""
    options = harness.parser(__doc__, rounds=3)
    options.add_argument("--members", type=int, default=50, help="of each process")
    options.add_argument("--seconds", type=float, default=60.0, help="of each round")
    with harness.measuring(options, RESULTS) as bench, kafka() as broker:
        count, seconds = bench.options.members, bench.options.seconds
        servers, rows = broker.bootstrap_servers, []
        with members(servers, count, follow=False) as plain:  # noqa: SIM117 - one after the other
            with members(servers, count, follow=True) as following:
                time.sleep(_SETTLE_S)
                for _ in range(bench.options.rounds):
                    before = _cpu_s(plain), _cpu_s(following)
                    time.sleep(seconds)
                    after = _cpu_s(plain), _cpu_s(following)
                    taken = (now - then for then, now in zip(before, after, strict=True))
                    rows.append([100 * cpu_s / seconds / count for cpu_s in taken])
        ratios = [follower / consumer for consumer, follower in rows]
        bench.write({"members": count, "seconds": seconds, "percent_of_a_core_each": rows})
        bench.show(
            f"At rest, {count} members a process: % of a core each; median "
            f"{statistics.median(ratios):.2f}, goal {_GOAL:.1f}",
            ("plain", "following", "ratio"),
            (
                (f"{consumer:.3f}", f"{follower:.3f}", f"{follower / consumer:.2f}")
                for consumer, follower in rows
            ),
        )


if __name__ == "__main__":
    main()
