"""Fairlead's assignors for aiokafka consumers that use them directly, without plans.

Belongs here: aiokafka's assignor interface, and its clients for lags. Belongs elsewhere: the
leader's decision (`rule`), and following plans (`aiokafka`).

::

    assignor = StickyAssignor()
    consumer = AIOKafkaConsumer(
        "orders", group_id="orders", partition_assignment_strategy=[assignor]
    )
    assignor.follow(consumer)
"""

import asyncio
import weakref
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from fairlead.followers.aiokafka.join import join_once
from fairlead.followers.aiokafka.plan_source import CONNECTION
from fairlead.followers.client_assignors.lags import Lags, lags_of
from fairlead.followers.client_assignors.rule import DirectRule, JoinedMember, assignor_class
from fairlead.wire.partitions import by_topic, partition_counts

_NOT_COMMITTED: Final = -1


class DirectAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # aiokafka is untyped
    """Base class of the assignors below; each uses one of Fairlead's assignors as its rule.

    Pass an instance to the consumer. aiokafka's own assignors are passed as classes, but the
    consumer also accepts instances.

    Parameters
    ----------
    group, connection
        The group id, and a consumer's configuration. Only assignors that use lag need them: the
        leader then fetches offsets, which blocks its event loop for at most 5 s.
    options
        Options of the rule, such as `max_moves`.

    Raises
    ------
    ConfigurationError
        An option does not exist, or an assignor that uses lag lacks `group` or `connection`.
    """

    name: str

    def __init__(
        self, group: str | None = None, connection: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        self._rule = DirectRule(self.name, options, fetch_lags, group, connection)
        self._consumer: weakref.ref[AIOKafkaConsumer] | None = None

    def follow(self, consumer: AIOKafkaConsumer) -> None:
        """Set the consumer that uses this assignor. Call it before the consumer starts.

        A sticky assignor sends the partitions that the consumer owned, with their generation. It
        gets the generation from the consumer. Without a generation, other consumers that claim the
        same partitions take precedence.
        """
        self._consumer = weakref.ref(consumer)

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription that this member joins with."""
        if (coordinator := self._coordinator()) is not None:
            join_once(coordinator)
        return ConsumerProtocolMemberMetadata(0, sorted(topics), self._rule.subscription())

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment of all members; called on the group leader."""
        counts = partition_counts(
            [member.subscription for member in members.values()], cluster.partitions_for_topic
        )
        joined = [
            JoinedMember(member_id, member.subscription, member.user_data)
            for member_id, member in members.items()
        ]
        return {
            member_id: ConsumerProtocolMemberAssignment(0, list(share.items()), b"")
            for member_id, share in self._rule.assign(joined, counts).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Remember the member's new assignment; called on every member."""
        coordinator = self._coordinator()
        generation = None if coordinator is None else coordinator.generation
        self._rule.assigned(by_topic(assignment.partitions()), generation)

    def _coordinator(self) -> Any:
        consumer = self._consumer() if self._consumer else None
        return None if consumer is None else consumer._coordinator  # noqa: SLF001 - there is no other way


FairAssignor = assignor_class(DirectAssignor, "fair")
LagAwareAssignor = assignor_class(DirectAssignor, "lag-aware")
StickyAssignor = assignor_class(DirectAssignor, "sticky")
StickyLagAwareAssignor = assignor_class(DirectAssignor, "sticky-lag-aware")


def fetch_lags(group: str, connection: Mapping[str, Any], topics: Collection[str]) -> Lags:
    """Fetch a group's lags from Kafka.

    Parameters
    ----------
    group
        The group id.
    connection
        A consumer's configuration; only its connection settings are used.
    topics
        Topics that do not exist are ignored.
    """
    return lags_of(*asyncio.run(_offsets(group, connection, topics)), connection)


async def _offsets(
    group: str, connection: Mapping[str, Any], topics: Collection[str]
) -> tuple[Lags, Lags, Lags]:
    reach = {key: value for key, value in connection.items() if key in CONNECTION}
    admin, consumer = AIOKafkaAdminClient(**reach), AIOKafkaConsumer(**reach)
    try:
        await admin.start()
        await consumer.start()
        described = await admin.describe_topics(sorted(topics))
        partitions = [
            TopicPartition(topic["topic"], partition["partition"])
            for topic in described
            for partition in topic["partitions"]
        ]
        committed = await admin.list_consumer_group_offsets(group)
        begin = await consumer.beginning_offsets(partitions)
        end = await consumer.end_offsets(partitions)
    finally:
        await consumer.stop()
        await admin.close()
    known = {where: at.offset for where, at in committed.items() if at.offset != _NOT_COMMITTED}
    return begin, end, known
