"""Steady, skewed load on the demo's topics.

Belongs here: the number of records for each partition over time. Does not: topics and consumers
(`topics_and_consumers`).
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, Self

import numpy as np

from fairlead.surfaces.demo.scenario import DemoGroup
from fairlead.surfaces.demo.topics_and_consumers import new_producer, produce

#: Seconds between batches: much less than between samples, so that these see a steady load.
BATCH_S: Final = 0.25


class Load:
    """Records for groups, distributed over partitions as their backlogs; a context manager.

    Under Kafka's default assignment the busiest consumer gets more than it can process, and its lag
    grows; under a plan, every consumer keeps up.

    Parameters
    ----------
    bootstrap_servers
        Kafka's addresses.
    groups
        The groups whose topics get records.
    each
        Called before each batch.
    ended
        Called with the error that ends the load early, such as a dead broker.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        groups: Iterable[DemoGroup],
        each: Callable[[], object] = lambda: None,
        ended: Callable[[Exception], object] | None = None,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._groups = list(groups)
        self._each, self._ended = each, ended
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.produced = dict.fromkeys((group.name for group in self._groups), 0)

    def __enter__(self) -> Self:
        """Start the load."""
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop."""
        self.stop()

    def stop(self) -> None:
        """Stop; `produced` then has the number of records by group."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._produce()
        except Exception as error:
            if self._ended is None:
                raise
            self._ended(error)

    def _produce(self) -> None:
        owed = {
            topic: np.zeros(len(n)) for group in self._groups for topic, n in group.backlog.items()
        }
        producer = new_producer(self._bootstrap_servers)
        before = time.monotonic()
        while not self._stopped.wait(BATCH_S):
            self._each()
            # By the clock, so that a busy machine has larger batches, not fewer records.
            now = time.monotonic()
            passed_s, before = now - before, now
            for group in self._groups:
                arriving = group.load * sum(group.speeds.values()) * passed_s / group.records
                batch = {}
                for topic, records in group.backlog.items():
                    owed[topic] += arriving * np.array(records)
                    batch[topic] = owed[topic].astype(np.int64).tolist()
                    owed[topic] %= 1
                produce(producer, batch)
                self.produced[group.name] += sum(map(sum, batch.values()))
