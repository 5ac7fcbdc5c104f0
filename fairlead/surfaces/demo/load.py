"""Steady, skewed load on the demo's topics.

Belongs here: the number of records for each partition over time. Belongs elsewhere: topics and
consumers (`topics_and_consumers`).
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from confluent_kafka import Producer

from fairlead.surfaces.demo.scenario import DemoGroup
from fairlead.surfaces.demo.topics_and_consumers import new_producer, produce

#: Seconds between batches of records: so short that, from sample to sample, the load looks steady.
BATCH_S: Final = 0.25


@contextmanager
def steady_load(
    bootstrap_servers: str,
    groups: Sequence[DemoGroup],
    each: Callable[[], object] = lambda: None,
    ended: Callable[[Exception], object] | None = None,
) -> Iterator[dict[str, int]]:
    """Produce records for groups in a thread until the block ends.

    Partitions get records in proportion to their backlogs. With Kafka's default assignor, the
    busiest consumer gets more than it can process, and the lag grows. With a plan, every consumer
    keeps up.

    Parameters
    ----------
    bootstrap_servers
        Kafka's addresses.
    groups
        The groups whose topics get records.
    each
        Called before each batch of records.
    ended
        Called if an error ends the load early; the argument is the error.

    Yields
    ------
    The number of records so far, by group.
    """
    produced = dict.fromkeys((group.name for group in groups), 0)
    stopped = threading.Event()

    def run() -> None:
        try:
            _produce(new_producer(bootstrap_servers), groups, produced, each, stopped)
        except Exception as error:
            if ended is None:
                raise
            ended(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield produced
    finally:
        stopped.set()
        thread.join()


def _produce(
    producer: Producer,
    groups: Sequence[DemoGroup],
    produced: dict[str, int],
    each: Callable[[], object],
    stopped: threading.Event,
) -> None:
    owed = {topic: np.zeros(len(n)) for group in groups for topic, n in group.backlog.items()}
    before = time.monotonic()
    while not stopped.wait(BATCH_S):
        each()
        # Batches depend on the time that has passed: a busy machine sends larger batches, not
        # fewer records.
        now = time.monotonic()
        passed_s, before = now - before, now
        for group in groups:
            arriving = group.load * sum(group.speeds.values()) * passed_s / group.records
            batch = {}
            for topic, records in group.backlog.items():
                owed[topic] += arriving * np.array(records)
                batch[topic] = owed[topic].astype(np.int64).tolist()
                owed[topic] %= 1
            produce(producer, batch)
            produced[group.name] += sum(map(sum, batch.values()))
