"""What the demo's cluster looks like: topics, skewed backlogs and consumers.

Belongs here: numbers alone. Does not: making them real (`topics_and_consumers`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    slow
        Index of a consumer to the share of the rate that it can do.
    load
        How much of what all consumers together can process arrives, spread as the backlog is.
    expensive
        Partition, as "topic-number", to how many times as long each of its records takes.
    protocol
        `classic`, with kafka-python; or `consumer`, with confluent-kafka, where the broker assigns.
    """

    name: str
    backlog: dict[str, list[int]]
    consumers: int
    rate: int
    slow: Mapping[int, float] = field(default_factory=dict)
    load: float = 0.85
    expensive: Mapping[str, float] = field(default_factory=dict)
    protocol: str = "classic"

    @property
    def members(self) -> list[str]:
        """The consumers' client ids, which are their names in a plan."""
        return [f"{self.name}-{index + 1}" for index in range(self.consumers)]

    @property
    def speeds(self) -> dict[str, int]:
        """Records a second of each consumer, by name."""
        return {
            member: round(self.rate * self.slow.get(index, 1.0))
            for index, member in enumerate(self.members)
        }

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


#: Several topics of different sizes, and Zipf lag over all their partitions.
ORDERS = DemoGroup(
    "orders",
    zipf_backlog(
        {"orders": 6, "payments": 5, "returns": 3, "shipments": 5},
        records=2_000,
        exponent=0.8,
        seed=344,
    ),
    consumers=4,
    rate=60,
    load=0.65,
)

#: Even partitions, and one machine that does less than half of what the others do.
ONE_IS_SLOW = DemoGroup(
    "one-is-slow", {"invoices": [16] * 12}, consumers=3, rate=40, slow={1: 0.4}, load=0.7
)

#: Even machines. One partition gets half as many records as each other, and each of them takes
#: thirteen times as long: its owner seems slow. A plan that moved this partition would only make
#: another member slow; the planner moves partitions that get more.
ONE_IS_EXPENSIVE = DemoGroup(
    "one-is-expensive",
    {"images": [16] * 6 + [8] + [16] * 5},
    consumers=3,
    rate=40,
    load=0.5,
    expensive={"images-6": 13.0},
)

#: Plain consumers of the consumer protocol (KIP-848): their broker follows the plan. However that
#: spreads nine partitions, three to each, the member with the heavy one gets too much.
BY_BROKER = DemoGroup(
    "by-broker",
    {"clicks": [188] + [50] * 4, "views": [50] * 4},
    consumers=3,
    rate=40,
    load=0.8,
    protocol="consumer",
)

#: Nothing is the matter with it: no plan is made, whatever its lags are.
KEEPS_UP = DemoGroup("keeps-up", {"audits": [5] * 6}, consumers=2, rate=30, load=0.5)

#: Its plans wait for a person, by the demo's policies: `make dev` leads to its first one.
ASKS_FIRST = DemoGroup(
    "asks-first",
    zipf_backlog({"signups": 6, "logins": 4}, records=1_500, exponent=0.9, seed=3),
    consumers=3,
    rate=50,
)

#: Each twice in `make demo`: with a plan and without.
CURED = (ORDERS, ONE_IS_SLOW, ONE_IS_EXPENSIVE)
DEMO_GROUPS = (*CURED, KEEPS_UP)
#: The same, where the broker has the assignor that follows plans.
CURED_BY_BROKER = (BY_BROKER,)
#: At work under steady load, in `make dev`.
DEV_GROUPS = (ASKS_FIRST, *DEMO_GROUPS)
