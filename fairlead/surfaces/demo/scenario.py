"""The demo's cluster: topics, skewed backlogs and consumers.

Belongs here: numbers of partitions, records and consumers. Belongs elsewhere: topics and consumers
on a broker (`topics_and_consumers`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DemoGroup:
    """One consumer group of the demo.

    Parameters
    ----------
    name
        The group id.
    backlog
        Maps each topic to the number of records in each partition.
    consumers
        Number of consumer processes.
    rate
        Records per second that one consumer processes.
    slow
        Maps the index of each slow consumer to its speed, as a share of `rate`.
    load
        Arrival rate as a share of all consumers' capacity. Partitions get records in proportion to
        their backlogs.
    expensive
        Maps partitions, as "topic-number", to the factor by which their records take longer.
    """

    name: str
    backlog: dict[str, list[int]]
    consumers: int
    rate: int
    slow: Mapping[int, float] = field(default_factory=dict)
    load: float = 0.85
    expensive: Mapping[str, float] = field(default_factory=dict)

    @property
    def members(self) -> list[str]:
        """The consumers' client ids, which are their names in a plan."""
        return [f"{self.name}-{index + 1}" for index in range(self.consumers)]

    @property
    def speeds(self) -> dict[str, int]:
        """Maps each consumer's name to the number of records that it processes per second."""
        return {
            member: round(self.rate * self.slow.get(index, 1.0))
            for index, member in enumerate(self.members)
        }

    @property
    def records(self) -> int:
        """Number of records in the whole backlog."""
        return sum(map(sum, self.backlog.values()))


#: Several topics of different sizes. The backlogs of their partitions follow Zipf's law.
ORDERS = DemoGroup(
    "orders",
    {
        "orders": [250, 90, 50, 120, 80, 60],
        "payments": [70, 140, 60, 40, 70],
        "returns": [100, 180, 40],
        "shipments": [40, 430, 50, 60, 50],
    },
    consumers=4,
    rate=60,
    load=0.65,
)

#: Partitions with equal backlogs, and a consumer with less than half the speed of the others.
ONE_IS_SLOW = DemoGroup(
    "one-is-slow", {"invoices": [16] * 12}, consumers=3, rate=40, slow={1: 0.4}, load=0.7
)

#: Consumers of the same speed. One partition gets half as many records as each of the others, but
#: its records take thirteen times as long. Therefore its owner seems slow. Moving this partition
#: would only make another consumer slow, so the planner moves other partitions.
ONE_IS_EXPENSIVE = DemoGroup(
    "one-is-expensive",
    {"images": [16] * 6 + [8] + [16] * 5},
    consumers=3,
    rate=40,
    load=0.5,
    expensive={"images-6": 13.0},
)

#: A healthy group, which gets no plan.
KEEPS_UP = DemoGroup("keeps-up", {"audits": [5] * 6}, consumers=2, rate=30, load=0.5)

#: A group whose policy requires that a person approves each plan. The first steps that `make dev`
#: prints are about this group.
PAYMENTS = DemoGroup(
    "payments",
    {
        "charges": [200, 120, 90, 70, *[65, 50, 40, 25] * 4],
        "refunds": [80, 60, 45, 30, *[25, 20, 15] * 4],
    },
    consumers=4,
    rate=50,
)

#: Groups that get a plan. `make demo` also runs a copy of each group without a plan.
CURED = (ORDERS, ONE_IS_SLOW, ONE_IS_EXPENSIVE)
DEMO_GROUPS = (*CURED, KEEPS_UP)
#: Groups of `make dev`, under steady load.
DEV_GROUPS = (PAYMENTS, *DEMO_GROUPS)
