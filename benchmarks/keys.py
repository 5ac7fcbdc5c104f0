"""Accuracy of `fairlead keys` on topics whose keys are known: `python -m benchmarks.keys`.

Belongs here: writing topics with known keys to a real broker; comparing estimates with the truth
(shares of keys, their confidence intervals, loads after adding partitions, time lags); the cost of
sampling a large topic. Prints the tables of `docs/measurements.md`. Belongs elsewhere: tests.

The printed figures have these goals:

1. For samples of 50,000 from topics of 1,000,000 records (Zipf 0.8, Zipf 1.1, one key with 31 %,
   uniform): the estimated shares of the ten heaviest keys are within 2 percentage points, and nine
   in ten confidence intervals contain the true share.
2. For 24 and for 18 partitions, the predicted load of each partition is within 5 % of the load
   computed with murmur2. For one topic of 24 partitions, records are also counted on the broker.
3. The predicted time lag with 24 partitions is within 20 % of that of a simulated group.
4. Sampling a topic of 10,000,000 records takes at most 10 s and 200 MB in the client. Spark gets
   the same result.
"""

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer

from assignors.partitioner import partition_of
from benchmarks.services import create_topics, kafka
from fairlead.domain.key_report import Readers, consumers_under
from fairlead.domain.key_shares import KeyShares
from fairlead.kafka.record_sample import open_log
from fairlead.settings import Settings
from fairlead.simulation.consumption import Reading
from fairlead.simulation.world import Roster, World
from fairlead.workflows.key_sampling import report_on_keys

RECORDS, KEYS, PARTITIONS = 1_000_000, 100_000, 12
LARGE = 10_000_000
SAMPLES = 10
DAY_S = 86_400.0
GIANT = 0.31
HORIZON_S, STEP_S = 1_800.0, 5.0
Int64 = npt.NDArray[np.int64]


def zipf(exponent: float) -> npt.NDArray[np.float64]:
    """Return the probabilities of `KEYS` keys under Zipf's law with this exponent."""
    weights = 1 / np.arange(1, KEYS + 1) ** exponent
    return np.asarray(weights / weights.sum())


def giant() -> npt.NDArray[np.float64]:
    """Return the probabilities of `KEYS` keys: `GIANT` for one key, equal ones for all others."""
    return np.append(GIANT, np.full(KEYS - 1, (1 - GIANT) / (KEYS - 1)))


TOPICS: dict[str, Callable[[], npt.NDArray[np.float64]]] = {
    "zipf-0.8": lambda: zipf(0.8),
    "zipf-1.1": lambda: zipf(1.1),
    "giant": giant,
    "uniform": lambda: np.full(KEYS, 1 / KEYS),
}


def draw(name: str, records: int = RECORDS) -> Int64:
    """Return the keys of a topic's records, in the order of the records."""
    return np.random.default_rng(7).choice(KEYS, records, p=TOPICS[name]())


def named(key: int) -> bytes:
    """Return the bytes of a key."""
    return b"customer-%d" % key


def fill(servers: str, topic: str, keys: Int64, partitions: int, compression: str = "none") -> None:
    """Write records with these keys to the partitions that Java's producer would choose."""
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


def sampled(settings: Settings, topic: str, seed: int, records: int) -> KeyShares:
    """Sample the records of a topic's last day."""
    with open_log(settings.kafka, topic) as log:
        return KeyShares(log.sample(log.window(DAY_S), records, seed))


def loads(keys: Int64, partitions: int) -> Int64:
    """Return each partition's number of records if murmur2 of the key chooses the partition."""
    place = np.array([partition_of(named(key), partitions) for key in range(KEYS)])
    return np.bincount(place[keys], minlength=partitions)


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def shares(settings: Settings, servers: str) -> None:
    """Print how far estimates from `SAMPLES` samples are from the truth, for each topic.

    The estimates are shares of keys with confidence intervals, loads of partitions, and time lags.
    """
    show("| topic | records | worst share, points | intervals | load of 24 | 18 | time lag |")
    for name in TOPICS:
        keys = draw(name)
        fill(servers, name, keys, PARTITIONS)
        if name == "zipf-1.1":
            fill(servers, "wide", keys, 24)
            with open_log(settings.kafka, "wide") as log:
                ends = log.window(DAY_S).end
            agrees = (ends == loads(keys, 24)).all()
            show(f"The topic of 24 partitions agrees with murmur2: {agrees}")
        truth = np.bincount(keys, minlength=KEYS) / len(keys)
        top = {named(key): truth[key] for key in np.argsort(-truth)[:10].tolist()}
        for records in (50_000, 100_000):
            off, held, lag = [], [], []
            apart: dict[int, list[float]] = {24: [], 18: []}
            for seed in range(SAMPLES):
                found = sampled(settings, name, seed, records)
                known = {each["key"]: each for each in found.heaviest(300)}
                rows = [(known[key], share) for key, share in top.items() if key in known]
                off += [abs(row["share"] - share) for row, share in rows]
                held += [row["low"] <= share <= row["high"] for row, share in rows]
                if name == "giant" and found.heaviest(1)[0]["key"] != named(0):
                    show("The giant key is not the heaviest")
                for count, worst in apart.items():
                    estimate = found.load_of(count, np.ones(PARTITIONS))
                    worst.append(float(np.abs(estimate / loads(keys, count) - 1).max()))
                lag.append(time_lag(found, loads(keys, 24)))
            of_loads = " | ".join(
                f"{100 * float(np.median(each)):.1f}, at most {100 * max(each):.1f} %"
                for each in apart.values()
            )
            show(
                f"| {name} | {records:,} | {100 * max(off, default=0):.2f} | "
                f"{sum(held)} of {len(held)} | {of_loads} | {100 * max(lag):.0f} % |"
            )


def time_lag(found: KeyShares, real: Int64) -> float:
    """Return the relative error of the predicted time lag, compared with a simulated group.

    The group has four consumers, whose capacity is a fifth less than the arrivals.
    """
    rates = real / HORIZON_S
    capacities = np.full(4, rates.sum() / 4 / 1.25)
    none = np.zeros(PARTITIONS)
    readers = Readers(capacities, none + 1, None, none, none, none, target=0.8, horizon_s=HORIZON_S)
    forecast = consumers_under(
        found.load_of(24, np.ones(PARTITIONS)) / HORIZON_S, readers, capacities
    )
    simulated = simulate(rates, capacities)
    return abs(float(forecast["time_lag_s"]) / simulated - 1)


def simulate(rates: npt.NDArray[np.float64], capacities: npt.NDArray[np.float64]) -> float:
    """Simulate a group until the horizon; return its worst time lag at the end, in seconds."""
    steps = int(HORIZON_S / STEP_S)
    parts, members = rates.size, capacities.size
    arrivals = np.random.default_rng(1).poisson(rates * STEP_S, (steps, parts))
    names = tuple(f"m{number}" for number in range(members))
    world = World(
        roster=Roster(names, ("t",), (parts,), np.ones((members, 1), bool)),
        step_s=STEP_S,
        arrivals=arrivals,
        speeds=np.tile(capacities, (steps, 1)),
        exists=np.ones((steps, parts), bool),
        present=np.ones((steps, members), bool),
        phases=np.zeros(members),
        first=np.zeros(parts, np.int64),
        waiting=np.zeros(parts),
    )
    reading = Reading(world)
    taken = np.zeros(members)
    for place in np.argsort(-rates):
        reading.owner[place] = ((taken + rates[place]) / capacities).argmin()
        taken[reading.owner[place]] += rates[place]
    reading.run(0, steps)
    delivered = reading.delivered(steps)
    moments = [np.searchsorted(world.ends[:, place], delivered[place]) for place in range(parts)]
    return HORIZON_S - float(min(moments)) * STEP_S


def large(settings: Settings, servers: str) -> None:
    """Print the cost of sampling a large topic, and how much two samples of it differ."""
    fill(servers, "large", draw("zipf-1.1", LARGE), PARTITIONS)
    found = []
    for records in (100_000, 1_000_000):
        began = time.monotonic()
        report = report_on_keys(settings, "large", records=records, minutes=DAY_S / 60)
        found.append({key["key"]: key for key in report["keys"]})
        show(f"{report['notes'][1]} {time.monotonic() - began:.1f} s in all")
    smaller, larger = found
    both = smaller.keys() & larger.keys()
    apart = max(abs(smaller[key]["share"] - larger[key]["share"]) for key in both)
    show(f"{len(both)} of the ten heaviest keys are the same, {100 * apart:.2f} points apart")


def main() -> None:
    """Measure on a separate broker."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--part", choices=("shares", "large"), help="default: both")
    part = options.parse_args().part
    with kafka() as broker:
        servers = broker.bootstrap_servers
        settings = Settings.model_validate({"kafka": {"bootstrap_servers": servers}})
        if part != "large":
            shares(settings, servers)
        if part != "shares":
            large(settings, servers)


if __name__ == "__main__":
    main()
