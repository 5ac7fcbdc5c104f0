"""Check whether librdkafka starts at outdated committed offsets, fetched for an earlier `assign()`.

`python -m benchmarks.old_answers` tests plain librdkafka, without Fairlead.

A consumer assigns itself partitions, gives them up at once, and assigns them again. Before the last
assignment, a second client commits higher offsets. The script counts how often the consumer then
starts at an offset that is not the last committed one. In a second variant, the consumer waits for
a response of the coordinator before the last assignment, as in every rebalance.

Belongs here: this consumer, and counting. Belongs elsewhere: plan followers, which assign
partitions between rebalances (`tests/fairlead/followers/test_storm.py`).
"""

import random
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import harness
from benchmarks.services import create_topics, kafka

PARTITIONS, ROUNDS, AHEAD = 20, 250, 3
TOPIC = "old-answers"


def main() -> None:
    """Count and print the wrong start offsets in both variants."""
    harness.parser(__doc__).parse_args()
    with kafka() as broker:
        for between in (False, True):
            topic = f"{TOPIC}-{between}"
            create_topics(broker.bootstrap_servers, {topic: PARTITIONS})
            what = "an answer in between" if between else "no answer in between"
            print(f"{what}: {_count(broker.bootstrap_servers, topic, between=between)}")


def _count(servers: str, topic: str, *, between: bool) -> str:
    rng = random.Random(1)
    connection = {"bootstrap.servers": servers, "group.id": topic}
    reader = Consumer({**connection, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    other = Consumer(connection)
    producer = Producer({"bootstrap.servers": servers})
    everything = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    possessions = old = begun = 0
    for round_ in range(ROUNDS):
        for _ in range(AHEAD):
            for number in range(PARTITIONS):
                producer.produce(topic, b"", partition=number)
        producer.flush()
        for _ in range(rng.randint(1, 3)):  # assign, and unassign soon after
            reader.assign(everything)
            possessions += PARTITIONS
            time.sleep(rng.uniform(0, 0.004))
            reader.unassign()
        at = round_ * AHEAD
        other.commit(
            offsets=[TopicPartition(topic, number, at) for number in range(PARTITIONS)],
            asynchronous=False,
        )
        if between:
            reader.committed(everything[:1], 30)
        reader.assign(everything)
        possessions += PARTITIONS
        begins: dict[int | None, int | None] = {}
        until = time.monotonic() + 1
        while len(begins) < PARTITIONS and time.monotonic() < until:
            message = reader.poll(0.05)
            if message is not None and not message.error():
                begins.setdefault(message.partition(), message.offset())
        begun += len(begins)
        old += sum(offset != at for offset in begins.values())
        reader.unassign()
    reader.close()
    other.close()
    return f"{possessions} possessions; of {begun} that read something, {old} began elsewhere"


if __name__ == "__main__":
    main()
