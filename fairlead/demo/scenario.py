"""What the demo's cluster looks like: topics, skewed backlogs and consumers.

Belongs here: numbers alone. Does not: making them real (`cluster`).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class DemoGroup:
    """One consumer group of the demo.

    Parameters
    ----------
    name
        The group id.
    backlog
        Topic to the number of records in each partition.
    consumers
        How many consumer processes the group has.
    rate
        Records a second that one consumer processes, whatever it owns.
    """

    name: str
    backlog: dict[str, list[int]]
    consumers: int
    rate: int

    @property
    def members(self) -> list[str]:
        """The consumers' client ids, which are their names in a plan."""
        return [f"{self.name}-{index + 1}" for index in range(self.consumers)]

    @property
    def records(self) -> int:
        """The records of the whole backlog."""
        return sum(map(sum, self.backlog.values()))


def zipf_backlog(
    partitions: dict[str, int], *, records: int, exponent: float, seed: int
) -> dict[str, list[int]]:
    """Spread about `records` records over the partitions of several topics by Zipf's law.

    The heaviest partition holds 2**exponent times as many as the second. Which partition is how
    heavy follows from the seed.

    Examples
    --------
    >>> zipf_backlog({"a": 2, "b": 1}, records=110, exponent=1.0, seed=1)
    {'a': [60, 30], 'b': [20]}
    """
    total = sum(partitions.values())
    shares = 1.0 / np.arange(1, total + 1) ** exponent
    counts = np.round(records * shares / shares.sum(), -1).astype(int)
    np.random.default_rng(seed).shuffle(counts)
    pieces = np.split(counts, np.cumsum(list(partitions.values()))[:-1])
    return {topic: piece.tolist() for topic, piece in zip(partitions, pieces, strict=True)}


#: The smallest group that `range` burdens unevenly: three partitions for two consumers. Its
#: backlogs are those of KAFKA-5337's own example at a fiftieth: 100,000 / 60,000 / 50,000.
THREE_FOR_TWO = DemoGroup("three-for-two", {"invoices": [2000, 1200, 1000]}, consumers=2, rate=160)

#: Several topics of different sizes, and Zipf lag over all their partitions.
ORDERS = DemoGroup(
    "orders",
    zipf_backlog(
        {"orders": 6, "payments": 5, "returns": 3, "shipments": 5},
        records=14_000,
        exponent=0.8,
        seed=7,
    ),
    consumers=4,
    rate=250,
)

#: Its plans wait for a person, by the demo's policies: `make dev` leads to its first one.
ASKS_FIRST = DemoGroup(
    "asks-first",
    zipf_backlog({"signups": 6, "logins": 4}, records=6_000, exponent=0.9, seed=3),
    consumers=3,
    rate=200,
)

#: Drained with a plan and without, by `make demo`.
DEMO_GROUPS = (ORDERS, THREE_FOR_TWO)
#: At work under steady load, in `make dev`.
DEV_GROUPS = (ASKS_FIRST, *DEMO_GROUPS)
