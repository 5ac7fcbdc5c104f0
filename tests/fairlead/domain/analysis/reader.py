"""One consumer that reads with a client of its own way, at a fixed rate, as the demo's worker does.

Its orders, reports and options are the worker's (`fairlead.surfaces.demo.worker`); beside them:

    python reader.py --client aiokafka-for ...     one record after the other
    python reader.py --client aiokafka --desks ... a worker, and a pause, for each partition

Everything happens `--faster` times as fast as by default: commits come so much more often, and what
is fetched and polled at once is so much less. Belongs here: how each client shares its time over
partitions. Does not: what is analysed of it.
"""

import argparse
import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from aiokafka import ConsumerRebalanceListener as AiokafkaListener
from confluent_kafka import TopicPartition
from kafka import OffsetAndMetadata
from kafka.consumer import subscription_state as kafka_listener

from fairlead.followers import FollowOptions, aiokafka, confluent, kafka_python
from fairlead.surfaces.demo.worker import CAUGHT_UP_S, Orders, report
from fairlead.wire.partitions import by_topic

# clocks: how fast records are read, and whether the machine kept that pace

#: The clients' defaults.
COMMIT_MS, HEARTBEAT_MS, FETCH_BYTES, POLL_RECORDS, QUEUED_KB = 5000, 3000, 2**20, 500, 65536
#: A shorter pause is not worth a call to sleep: it is made up for with the next one.
LEAST_S = 0.005
#: Less than this is not worth telling.
LEAST_TOLD_S = 0.1
#: What a poll waits for records that are handed to workers.
POLL_S = 0.1


class Pace:
    """The time that records take: of a consumer, or of one partition's worker."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._free_at = 0.0

    def wait_s(self, topic: str, partition: int) -> float:
        """Take a record on, and return how long to wait until its work is done."""
        cost = self._orders.expensive.get(f"{topic}-{partition}", 1.0)
        now = time.monotonic()
        self._free_at = max(self._free_at, now - CAUGHT_UP_S) + cost / self._orders.rate
        left = self._free_at - now
        return left if left > LEAST_S else 0.0

    def work(self, ended: threading.Event, topic: str, partition: int) -> None:
        """Wait as long as a record takes, or until an event."""
        if wait_s := self.wait_s(topic, partition):
            ended.wait(wait_s)
            self.waited()

    def waited(self) -> None:
        """Report by how much a busy machine made that longer."""
        held_up_s = time.monotonic() - self._free_at
        if held_up_s > LEAST_TOLD_S:
            report("processed", records=0, held_up_s=held_up_s)


class Assigned:
    """Reports what is owned whenever that has changed."""

    def __init__(self) -> None:
        self._last: dict[str, list[int]] | None = None

    def now(self, owned: Iterable[tuple[str, int]]) -> None:
        """Note what is owned now."""
        found = by_topic(sorted(owned))
        if found != self._last:
            self._last = found
            report("assigned", partitions=found)


class Desks:
    """A worker for each partition: it is given some records, and no more until it is through."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._busy: dict[Hashable, threading.Event] = {}
        self._lock = threading.Lock()
        self._done: dict[Any, int] = {}
        self._through: list[Any] = []
        self._paces: dict[Hashable, Pace] = {}
        self._polled_at = time.monotonic()

    def give(self, at: Any, offsets: list[int]) -> None:
        """Let a partition's worker begin."""
        ended = self._busy[at] = threading.Event()
        pace = self._paces.setdefault(at, Pace(self._orders))
        threading.Thread(target=self._work, args=(at, offsets, pace, ended), daemon=True).start()

    def _work(self, at: Any, offsets: list[int], pace: Pace, ended: threading.Event) -> None:
        for offset in offsets:
            pace.work(ended, at.topic, at.partition)
            with self._lock:
                if ended.is_set():
                    return
                self._done[at] = offset + 1
        with self._lock:
            if not ended.is_set():
                self._through.append(at)

    def busy(self, at: Any) -> bool:
        """Whether a partition's worker has not asked for more."""
        return at in self._busy

    def through(self) -> list[Any]:
        """Return the partitions whose workers want more, after each poll.

        Reports by how much a busy machine made that longer.
        """
        since, self._polled_at = self._polled_at, time.monotonic()
        held_up_s = self._polled_at - since - POLL_S
        if held_up_s > LEAST_TOLD_S:
            report("processed", records=0, held_up_s=held_up_s)
        with self._lock:
            found, self._through = self._through, []
        for at in found:
            del self._busy[at]
        return found

    def done(self) -> dict[Any, int]:
        """Return what to commit: partition to the offset behind the last record."""
        with self._lock:
            found, self._done = self._done, {}
        return found

    def forget(self) -> None:
        """End all work: the partitions are somebody else's now, or read anew."""
        with self._lock:
            for ended in self._busy.values():
                ended.set()
            self._busy, self._done, self._through = {}, {}, []


def kafka_python_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what kafka-python and aiokafka are given."""
    return {
        "bootstrap_servers": arguments.bootstrap_servers,
        "group_id": arguments.group,
        "client_id": arguments.name,
        "plan_topic": arguments.plan_topic,
        "auto_offset_reset": "earliest",
        "auto_commit_interval_ms": COMMIT_MS // arguments.faster,
        "heartbeat_interval_ms": HEARTBEAT_MS // arguments.faster,
        "max_partition_fetch_bytes": FETCH_BYTES // arguments.faster,
        "enable_auto_commit": not arguments.desks,
    }


def run_kafka_python(arguments: argparse.Namespace, orders: Orders) -> None:
    """Read with kafka-python's iterator."""
    topics = arguments.topics.split(",")
    pace, assigned = Pace(orders), Assigned()
    consumer = kafka_python.PlanConsumer(
        *topics,
        consumer_timeout_ms=200,
        max_poll_records=POLL_RECORDS // arguments.faster,
        **kafka_python_settings(arguments),
    )
    while not orders.stopped.is_set():
        for record in consumer:
            pace.work(orders.stopped, record.topic, record.partition)
            if orders.stopped.is_set():
                break
            assigned.now(consumer.assignment())
        assigned.now(consumer.assignment())
    consumer.close()


def run_kafka_python_desks(arguments: argparse.Namespace, orders: Orders) -> None:
    """Read with kafka-python, and hand each partition's records to its worker."""
    desks, assigned = Desks(orders), Assigned()

    class Forget(kafka_listener.ConsumerRebalanceListener):  # type: ignore[misc] # untyped
        def on_partitions_revoked(self, _: Any) -> None:
            desks.forget()

        def on_partitions_assigned(self, _: Any) -> None:
            consumer.resume(*consumer.paused())

    consumer = kafka_python.PlanConsumer(**kafka_python_settings(arguments))
    consumer.subscribe(arguments.topics.split(","), listener=Forget())
    commit_at = 0.0
    while not orders.stopped.is_set():
        for at, records in consumer.poll(timeout_ms=int(POLL_S * 1000)).items():
            consumer.pause(at)
            desks.give(at, [record.offset for record in records])
        consumer.resume(*desks.through())
        if time.monotonic() >= commit_at:
            commit_at = time.monotonic() + COMMIT_MS / 1000 / arguments.faster
            done = {at: OffsetAndMetadata(offset, "", -1) for at, offset in desks.done().items()}
            if done:
                consumer.commit_async(done)
        assigned.now(consumer.assignment())
    desks.forget()
    consumer.close()


async def run_aiokafka(arguments: argparse.Namespace, orders: Orders) -> None:
    """Read with aiokafka: by `async for`, or by `getmany`."""
    assigned = Assigned()
    consumer = aiokafka.PlanConsumer(
        *arguments.topics.split(","), **kafka_python_settings(arguments)
    )
    await consumer.start()
    read = one_by_one if arguments.client == "aiokafka-for" else many
    work = asyncio.create_task(read(consumer, Pace(orders)))
    while not orders.stopped.is_set() and not work.done():
        assigned.now(consumer.assignment())
        await asyncio.sleep(0.1)
    if work.done():
        await work
    work.cancel()
    await consumer.stop()


async def one_by_one(consumer: aiokafka.PlanConsumer, pace: Pace) -> None:
    """Read by `async for`."""
    async for record in consumer:
        await process(record, pace)


async def many(consumer: aiokafka.PlanConsumer, pace: Pace) -> None:
    """Read by `getmany`."""
    while True:
        for records in (await consumer.getmany(timeout_ms=200)).values():
            for record in records:
                await process(record, pace)


async def process(record: Any, pace: Pace) -> None:
    """Wait as long as a record takes."""
    wait_s = pace.wait_s(record.topic, record.partition)
    await asyncio.sleep(wait_s)
    if wait_s:
        pace.waited()


async def run_aiokafka_desks(arguments: argparse.Namespace, orders: Orders) -> None:
    """Read with aiokafka's `getmany`, and hand each partition's records to its worker."""
    desks, assigned = Desks(orders), Assigned()

    class Forget(AiokafkaListener):  # type: ignore[misc] # untyped
        async def on_partitions_revoked(self, _: Any) -> None:
            desks.forget()

        async def on_partitions_assigned(self, _: Any) -> None:
            consumer.resume(*consumer.paused())

    consumer = aiokafka.PlanConsumer(**kafka_python_settings(arguments))
    consumer.subscribe(arguments.topics.split(","), listener=Forget())
    await consumer.start()
    commit_at = 0.0
    while not orders.stopped.is_set():
        for at, records in (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).items():
            consumer.pause(at)
            desks.give(at, [record.offset for record in records])
        consumer.resume(*desks.through())
        if time.monotonic() >= commit_at:
            commit_at = time.monotonic() + COMMIT_MS / 1000 / arguments.faster
            if done := desks.done():
                await consumer.commit(done)
        assigned.now(consumer.assignment())
    desks.forget()
    await consumer.stop()


def run_confluent(arguments: argparse.Namespace, orders: Orders) -> None:
    """Read with confluent-kafka's `poll`, or hand each partition's records to its worker."""
    pace, desks, assigned = Pace(orders), Desks(orders), Assigned()
    consumer = confluent.PlanConsumer(
        {
            "bootstrap.servers": arguments.bootstrap_servers,
            "group.id": arguments.group,
            "client.id": arguments.name,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": COMMIT_MS // arguments.faster,
            "heartbeat.interval.ms": HEARTBEAT_MS // arguments.faster,
            "max.partition.fetch.bytes": FETCH_BYTES // arguments.faster,
            "queued.max.messages.kbytes": QUEUED_KB // arguments.faster,
            "enable.auto.offset.store": not arguments.desks,
        },
        options=FollowOptions(plan_topic=arguments.plan_topic),
        pin_topic=f"{arguments.plan_topic}-pins",
    )
    consumer.subscribe(arguments.topics.split(","), on_revoke=lambda *_: desks.forget())
    while not orders.stopped.is_set():
        if arguments.desks:
            batches: dict[TopicPartition, list[int]] = {}
            for message in consumer.consume(500, POLL_S):
                if message.error() is None:
                    at = TopicPartition(message.topic() or "", message.partition() or 0)
                    batches.setdefault(at, []).append(message.offset() or 0)
            for at, offsets in batches.items():
                consumer.pause([at])
                desks.give(at, offsets)
            desks.through()
            done = [TopicPartition(at.topic, at.partition, to) for at, to in desks.done().items()]
            if done:
                consumer.store_offsets(offsets=done)
        elif (read := consumer.poll(0.1)) is not None and read.error() is None:
            pace.work(orders.stopped, read.topic() or "", read.partition() or 0)
        owned = consumer.status().owned
        assigned.now((topic, number) for topic, numbers in owned.items() for number in numbers)
        if arguments.desks:
            # librdkafka remembers what was paused before a rebalance, and may lose a `resume`.
            consumer.resume([at for at in consumer.assignment() if not desks.busy(at)])
    desks.forget()
    consumer.close()


def aio(run: Callable[..., Any]) -> Callable[[argparse.Namespace, Orders], None]:
    """Return a way of reading on an event loop."""
    return lambda arguments, orders: asyncio.run(run(arguments, orders))


WAYS: Mapping[tuple[str, bool], Callable[[argparse.Namespace, Orders], None]] = {
    ("kafka-python", False): run_kafka_python,
    ("kafka-python", True): run_kafka_python_desks,
    ("aiokafka-for", False): aio(run_aiokafka),
    ("aiokafka-getmany", False): aio(run_aiokafka),
    ("aiokafka-getmany", True): aio(run_aiokafka_desks),
    ("confluent-kafka", False): run_confluent,
    ("confluent-kafka", True): run_confluent,
}


def main() -> None:
    """Consume until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap-servers", "group", "name", "topics", "plan-topic", "client"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--rate", required=True, type=int)
    parser.add_argument("--faster", required=True, type=int)
    parser.add_argument("--dear", required=True, type=json.loads)
    parser.add_argument("--protocol")
    parser.add_argument("--desks", action="store_true")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    orders = Orders(arguments.rate, arguments.dear)
    threading.Thread(target=orders.listen, daemon=True).start()
    WAYS[arguments.client, arguments.desks](arguments, orders)


if __name__ == "__main__":
    main()
