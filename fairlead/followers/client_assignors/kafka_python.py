"""Fairlead's assignors for kafka-python consumers that use them directly, without plans.

Belongs here: kafka-python's assignor interface, and its admin client for lags. Belongs elsewhere:
the leader's decision (`rule`), and following plans (`fairlead.followers.kafka_python`).

::

    assignor = StickyAssignor()
    consumer = KafkaConsumer("orders", group_id="orders", partition_assignment_strategy=[assignor])
    assignor.follow(consumer)

An assignor that uses lag, such as `LagAwareAssignor`, needs the arguments `group` and `connection`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from fairlead.common.kafka_python import connect
from fairlead.followers.client_assignors.lags import Lags, lags_of
from fairlead.followers.client_assignors.rule import DirectRule, JoinedMember, assignor_class
from fairlead.followers.kafka_python.join import joining
from fairlead.wire.partitions import by_topic, partition_counts


class DirectAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # kafka-python is untyped
    """Base class of the assignors below; each uses one of Fairlead's assignors as its rule.

    Parameters
    ----------
    group, connection
        The group id, and a consumer's configuration. Only assignors that use lag need them: the
        leader then fetches offsets, which takes at most 5 s.
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
        self._join: Callable[[], None] = lambda: None

    def follow(self, consumer: KafkaConsumer) -> None:
        """Set the consumer that uses this assignor. Call it before the consumer's first poll.

        A rebalance begins if a topic gets more partitions or the consumer subscribes to other
        topics. Without this call, the group may drop the consumer if a poll ends before the
        rebalance does.
        """
        self._join = joining(consumer)

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription that this member joins with."""
        self._join()
        return ConsumerProtocolSubscription(0, sorted(topics), self._rule.subscription())

    def assign(
        self, cluster: ClusterMetadata, members: Sequence[Any]
    ) -> dict[str, ConsumerProtocolAssignment]:
        """Return the assignment of all members; called on the group leader."""
        counts = partition_counts(
            [member.metadata.topics for member in members], cluster.partitions_for_topic
        )
        joined = [
            JoinedMember(
                member.member_id,
                member.metadata.topics,
                member.metadata.user_data,
                member.group_instance_id,
            )
            for member in members
        ]
        return {
            member_id: ConsumerProtocolAssignment(0, list(share.items()), b"")
            for member_id, share in self._rule.assign(joined, counts).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Remember the member's new assignment; called on every member."""
        self._rule.assigned(by_topic(assignment.partitions()), generation)


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
        A consumer's configuration; settings that an admin client does not have are ignored.
    topics
        Topics that do not exist are ignored.
    """
    known = KafkaAdminClient.DEFAULT_CONFIG
    admin = connect(KafkaAdminClient, {key: connection[key] for key in connection.keys() & known})
    try:
        partitions = [
            TopicPartition(topic["name"], partition["partition_index"])
            for topic in admin.describe_topics(sorted(topics))
            for partition in topic["partitions"]
        ]
        begin, end = (
            admin.list_partition_offsets(dict.fromkeys(partitions, spec))
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        )
        committed = admin.list_group_offsets([group]).get(group, {})
    finally:
        admin.close()
    begins, ends, commits = (
        {where: at.offset for where, at in answer.items()} for answer in (begin, end, committed)
    )
    return lags_of(begins, ends, commits, connection)
