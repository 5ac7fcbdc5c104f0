"""Produce records at a steady rate, and consume them with plan followers. Runs in a container.

Each of three consumers can process 25 records a second. 50 records a second arrive, 32 of them
in partitions that `range` assigns to one consumer.
"""

import sys
import threading
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.errors import KafkaError

from fairlead.followers.kafka_python import PlanConsumer

# clocks: records are produced and consumed at given rates

SERVERS = "kafka:9092"
RATES = (14, 10, 8, 3, 3, 3, 3, 3, 3)
SPEED = 25.0


def produce() -> None:
    """Send records to each partition at its rate in `RATES`, every tenth of a second."""
    producer = Producer({"bootstrap.servers": SERVERS})
    began, sent = time.monotonic(), [0] * len(RATES)
    while True:
        passed = time.monotonic() - began
        for partition, rate in enumerate(RATES):
            while sent[partition] < rate * passed:
                producer.produce("carts", b"x" * 100, partition=partition)
                sent[partition] += 1
        producer.poll(0.1)


def consume(number: int) -> None:
    """Read `SPEED` records a second as a plan follower."""
    consumer = PlanConsumer(
        "carts",
        bootstrap_servers=SERVERS,
        group_id="carts",
        client_id=f"carts-{number}",
        auto_offset_reset="earliest",
        auto_commit_interval_ms=1000,
        max_poll_records=20,
    )
    while True:
        try:
            for _ in consumer:
                time.sleep(1 / SPEED)
        except KafkaError:  # the broker does not run
            time.sleep(1)


if __name__ == "__main__":
    admin = AdminClient({"bootstrap.servers": SERVERS})
    for made in admin.create_topics([NewTopic("carts", len(RATES), 1)]).values():
        made.result()
    for task in (produce, *(lambda number=number: consume(number) for number in (1, 2, 3))):
        threading.Thread(target=task, daemon=True).start()
    sys.stdout.write("running\n")
    threading.Event().wait()
