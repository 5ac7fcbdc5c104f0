"""What the tests of plans share: a small plan, groups it fits and does not, a sender that dies.

Belongs here: making documents and surroundings. Does not: any expectation.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from fairlead.errors import KafkaUnavailableError
from fairlead.kafka.descriptions import Member
from fairlead.kafka.gateway import LiveGroup
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.plans.document import MemberShare, PlanDocument
from fairlead.plans.publication import Terms
from fairlead.plans.record import Headers, Origin
from tests.fairlead.store.conftest import SNAPSHOT_AT

TERMS = Terms(timedelta(hours=6))
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def make_plan(
    shares: Mapping[str, Mapping[str, list[int]]],
    weights: Mapping[str, list[float]],
    **changes: Any,
) -> PlanDocument:
    """Return a plan; each member subscribes to every topic that has weights."""
    values: dict[str, Any] = {
        "group": "orders",
        "version": 1,
        "plan_id": "00000000-0000-0000-0000-000000000001",
        "assignor": "lag-aware",
        "created_at": DAY,
        "snapshot_at": DAY,
        "partition_counts": {topic: len(values) for topic, values in weights.items()},
        "members": {
            name: MemberShare(
                tuple(sorted(weights)),
                {topic: np.array(numbers, np.int32) for topic, numbers in share.items()},
            )
            for name, share in shares.items()
        },
        "weights": {topic: np.array(values) for topic, values in weights.items()},
    }
    return PlanDocument(**(values | changes))


def as_planned(group: str, owned: Mapping[str, list[int]] | None = None) -> LiveGroup:
    """Describe a group that is what the store's drafts are made for; it owns so much of t0."""
    return LiveGroup(
        group,
        "Stable",
        "fairlead",
        tuple(
            Member(
                member_id=f"{name}-id",
                client_id=name,
                host="here",
                instance_id=None,
                name=name,
                topics=("t0",),
                partitions={"t0": tuple((owned or {}).get(name, ()))},
                generation=1,
            )
            for name in ("orders-1", "orders-2")
        ),
        {"t0": 3},
        SNAPSHOT_AT,
    )


def emptied(group: str) -> LiveGroup:
    """Describe a group that everybody has left."""
    return LiveGroup(group, "Empty", "", (), {}, SNAPSHOT_AT)


class DiesAfterSending:
    """Sends for real and then fails, as a process that dies before it records the send."""

    def __init__(self, topic: PlanTopic) -> None:
        self._topic = topic
        self.name = topic.name

    @property
    def origin(self) -> Origin:
        """Of the topic."""
        return self._topic.origin

    def publish(self, group: str, value: bytes, headers: Headers) -> tuple[int, int]:
        """Send and fail."""
        self._topic.publish(group, value, headers)
        raise KafkaUnavailableError("the connection was lost")
