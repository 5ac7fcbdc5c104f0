"""What `fairlead keys` finds, against topics whose keys are known: `python -m benchmarks.keys`.

Belongs here: topics of known keys on a real broker, and how far shares, intervals, the load of more
partitions, and the time lag are from the truth; what a sample of a large topic takes; whether Spark
agrees. Prints the tables of `docs/measurements.md`. Does not: any test.

What is shown, and the goals:

1. Topics of 1,000,000 records (Zipf 0.8, Zipf 1.1, one key with 31 %, uniform), samples of 50,000:
   shares of the ten heaviest keys within 2 percentage points, intervals that hold nine in ten.
2. The load of 24 and 18 partitions against topics with so many, same records: each partition within
   5 %.
3. Time lag with 24 partitions against a simulated group: within 20 %.
4. A topic of 10,000,000 records: 10 s and 200 MB by the client; Spark agrees.
"""

import argparse
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer

from assignors.partitioner import murmur2
from benchmarks.services import create_topics, kafka
from fairlead.domain.key_shares import KeyShares
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.record_sample import sample_records, window_of
from fairlead.settings import KafkaSettings

RECORDS, KEYS, PARTITIONS = 1_000_000, 100_000, 12
LARGE = 10_000_000
SAMPLES = 10
DAY_S = 86_400.0
GIANT = 0.31
Int64 = npt.NDArray[np.int64]


def zipf(exponent: float) -> npt.NDArray[np.float64]:
    """Return the probabilities of `KEYS` keys."""
    weights = 1 / np.arange(1, KEYS + 1) ** exponent
    return weights / weights.sum()


def giant() -> npt.NDArray[np.float64]:
    """Return those of one key with `GIANT` of the records, the others alike."""
    return np.append(GIANT, np.full(KEYS - 1, (1 - GIANT) / (KEYS - 1)))


TOPICS: dict[str, Callable[[], npt.NDArray[np.float64]]] = {
    "zipf-0.8": lambda: zipf(0.8),
    "zipf-1.1": lambda: zipf(1.1),
    "giant": giant,
    "uniform": lambda: np.full(KEYS, 1 / KEYS),
}


def draw(name: str, records: int = RECORDS) -> Int64:
    """Return the keys of a topic's records, in their order."""
    return np.random.default_rng(7).choice(KEYS, records, p=TOPICS[name]())


def named(key: int) -> bytes:
    """Return the bytes of a key."""
    return b"customer-%d" % key


def fill(servers: str, topic: str, keys: Int64, partitions: int, compression: str = "none") -> None:
    """Write records as Java's producer places them."""
    create_topics(servers, {topic: partitions})
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "partitioner": "murmur2_random",
            "linger.ms": 5,
            "batch.size": 65_536,
            "compression.type": compression,
            "queue.buffering.max.messages": 500_000,
        }
    )
    value = bytes(100)
    for number, key in enumerate(keys.tolist()):
        while True:
            try:
                producer.produce(topic, value, key=named(key))
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush()


def sampled(gateway: KafkaGateway, topic: str, seed: int, records: int = 50_000) -> KeyShares:
    """Sample a topic's last day."""
    window = window_of(gateway, topic, DAY_S)
    return KeyShares(sample_records(gateway, window, records, seed=seed))


def loads(keys: Int64, partitions: int) -> Int64:
    """Return the records of each partition, as murmur2 places them."""
    place = np.array([(murmur2(named(key)) & 0x7FFFFFFF) % partitions for key in range(KEYS)])
    return np.bincount(place[keys], minlength=partitions)


def shares(gateway: KafkaGateway, servers: str) -> None:
    """Print how far shares are off, how many intervals hold, and how far loads are off."""
    print(
        f"| topic | worst share, points | intervals that hold | {'load of 24':>10} | load of 18 |"
    )
    for name in TOPICS:
        keys = draw(name)
        fill(servers, name, keys, PARTITIONS)
        truth = np.bincount(keys, minlength=KEYS) / len(keys)
        top = np.argsort(-truth)[:10]
        off, held, apart = [], [], {24: [], 18: []}
        for seed in range(SAMPLES):
            found = sampled(gateway, name, seed)
            listed = {one["key"]: one for one in found.heaviest(KEYS if name == "uniform" else 200)}
            for key in top.tolist():
                one = listed.get(named(key))
                off.append(abs((one["share"] if one else 0.0) - truth[key]))
                if one:
                    held.append(one["low"] <= truth[key] <= one["high"])
            if name == "giant":
                assert found.heaviest(1)[0]["key"] == named(0)
            for count, worst in apart.items():
                real = loads(keys, count)
                worst.append(
                    float(np.abs(found.load_of(count, np.ones(PARTITIONS)) / real - 1).max())
                )
        print(
            f"| {name} | {100 * max(off):.2f} | {sum(held)} of {len(held)} "
            f"| {100 * max(apart[24]):.1f} % ({100 * float(np.median(apart[24])):.1f}) "
            f"| {100 * max(apart[18]):.1f} % ({100 * float(np.median(apart[18])):.1f}) |",
            flush=True,
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--servers", help="a broker that runs; default: one of its own")
    arguments = options.parse_args()
    with KafkaGateway(KafkaSettings(bootstrap_servers=arguments.servers)) as gateway:
        shares(gateway, arguments.servers)


if __name__ == "__main__":
    main()
