"""A small plan for tests, and groups that the plan fits or does not fit.

Belongs here: functions that make documents and groups, and reconcile them. Belongs elsewhere:
assertions.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from fairlead.domain.groups import LiveGroup, LiveMember
from fairlead.errors import GroupError, KafkaUnavailableError
from fairlead.kafka.plan_channel import Outgoing, PlanChannel
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store.plans import PlanStore
from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.reconciling import Live, StepResult, reconcile
from tests.fixtures.plans import SNAPSHOT_AT

OPTIONS = PublishOptions(timedelta(hours=6))
DAY = datetime(2026, 1, 1, tzinfo=UTC)


def make_plan(
    shares: Mapping[str, Mapping[str, list[int]]],
    weights: Mapping[str, list[float]],
    **changes: Any,
) -> PlanDocument:
    """Return a plan in which each member subscribes to all topics of `weights`."""
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
    """Describe a group with the members and the topic t0 of `make_draft`; `owned`: its owners."""
    return LiveGroup(
        group,
        "Stable",
        "fairlead",
        tuple(
            LiveMember(
                member_id=f"{name}-id",
                client_id=name,
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
    """Describe a group whose members have all left."""
    return LiveGroup(group, "Empty", "", (), {}, SNAPSHOT_AT)


def live(groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
    """Describe groups that have the members and topic of `make_draft`."""
    return {group: as_planned(group) for group in groups}


def without_members(groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
    """Describe groups whose members have all left."""
    return {group: emptied(group) for group in groups}


def run(
    store: PlanStore,
    topic: PlanTopic,
    live: Live = live,
    *,
    groups: Collection[str] | None = None,
    now: datetime = SNAPSHOT_AT,
    options: PublishOptions = OPTIONS,
) -> list[StepResult]:
    """Reconcile `groups` (None: all groups), as a planning run or the sensor does."""
    return list(reconcile(store, groups, live=live, topic=topic, options=options, now=now))


class Dying(PlanTopic):
    """A plan topic whose sender loses its connection after its records are committed."""

    def open(self, partition: int) -> PlanChannel:
        """Open a partition for sending, and fence other senders."""

        class Channel(PlanChannel):
            def send(self, records: Sequence[Outgoing]) -> dict[str, int | str]:
                super().send(records)
                raise KafkaUnavailableError("the connection was lost")

        return Channel(self._settings, partition)
