"""Temporary brokers and databases for benchmarks.

Belongs here: starting them, creating topics, producing records, waiting. Belongs elsewhere:
consumers (`consumers`, `broker_members`), Dagster (`installation`).
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.postgres import Postgres
from fairlead.store.migrate import upgrade


@contextmanager
def folder() -> Iterator[Path]:
    """Make a temporary folder that all users can read, because Postgres does not run as root."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Run a Postgres whose database `fairlead` has the current schema."""
    with folder() as place:
        server = Postgres(place)
        server.start()
        try:
            upgrade(server.url("fairlead"))
            yield server
        finally:
            server.stop()


@contextmanager
def kafka(**options: Any) -> Iterator[KafkaBroker]:
    """Run a broker; the options are those of `KafkaBroker`."""
    with folder() as place:
        broker = KafkaBroker(place, **options)
        broker.start()
        try:
            yield broker
        finally:
            broker.kill()


def create_topics(servers: str, counts: Mapping[str, int]) -> None:
    """Create topics, given the number of partitions of each."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(name, count) for name, count in counts.items()]
    for created in admin.create_topics(topics).values():
        created.result(timeout=60)


@contextmanager
def arrivals(servers: str, rates: Mapping[tuple[str, int], float]) -> Iterator[None]:
    """Produce records to each partition at a fixed rate, until the context ends."""
    over = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
        sent = dict.fromkeys(rates, 0)
        began = time.monotonic()
        while not over.wait(0.05):
            passed = time.monotonic() - began
            for (topic, partition), rate in rates.items():
                while sent[topic, partition] < int(rate * passed):
                    producer.produce(topic, b"record", partition=partition)
                    sent[topic, partition] += 1
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def wait_until(
    condition: Callable[[], bool], what: str, *, within_s: float = 120.0, every_s: float = 0.002
) -> None:
    """Wait until a condition is true.

    Raises
    ------
    TimeoutError
        The condition is still false after `within_s` seconds.
    """
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {within_s:.0f} s")
        time.sleep(every_s)
