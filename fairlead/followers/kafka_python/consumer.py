"""Follow plans with kafka-python: `PlanConsumer`, or `PlanAssignor` in a consumer of your own.

Belongs here: kafka-python's consumer and assignor interface. Belongs elsewhere: decisions
(`follower`), and reading the plan topic (`plan_source`).

::

    consumer = PlanConsumer(
        "orders", bootstrap_servers="localhost:9092", group_id="orders", client_id="orders-1"
    )
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition
from kafka.cluster import ClusterMetadata
from kafka.consumer.fetcher import ConsumerRecord
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from fairlead.common.kafka_python import keep_secrets
from fairlead.errors import ConfigurationError
from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.meter import Batch, Meter
from fairlead.followers.core.plan_assignor import FollowingAssignor
from fairlead.followers.kafka_python.join import joining, rejoin_request
from fairlead.followers.kafka_python.plan_source import KafkaPythonSource
from fairlead.followers.kafka_python.reporting import report_work
from fairlead.wire.members import GroupMember
from fairlead.wire.partitions import by_topic, partition_counts

#: Version of the subscription's format for eager members.
_EAGER_VERSION: Final = 0
#: The first version with the member's owned partitions (KIP-429).
_COOPERATIVE_VERSION: Final = 1
#: The first version with the member's rack (KIP-881).
_RACK_VERSION: Final = 3


class PlanAssignor(FollowingAssignor, AbstractPartitionAssignor):  # type: ignore[misc] # kafka-python is untyped
    """Assigns partitions by the group's plan; the group leader decides for all members.

    Put this assignor first in `partition_assignment_strategy`. Kafka uses it as soon as every
    member of the group has it. The assignor reads the plan topic on a daemon thread until `close`.
    `PlanConsumer` does all of this automatically.

    Parameters
    ----------
    group
        The group id.
    connection
        KafkaConsumer's connection settings, or its whole configuration.
    options
        How to follow plans.
    cooperative
        Rebalance as in KIP-429: in two rounds, revoking only partitions that move. Needs `follow`.
        A group may have both eager and cooperative plan followers, so you can change one consumer
        at a time. But the assignors of one consumer must be all eager or all cooperative.
    """

    name = "fairlead"

    def __init__(
        self,
        group: str,
        connection: Mapping[str, Any],
        options: FollowOptions | None = None,
        *,
        cooperative: bool = False,
    ) -> None:
        options = options or FollowOptions()
        self._cooperative = cooperative
        self._instance_id: str | None = connection.get("group_instance_id")
        self._join: Callable[[], None] = lambda: None
        self._client_id: str = {**KafkaConsumer.DEFAULT_CONFIG, **connection}["client_id"]
        self._rack: str | None = connection.get("client_rack") or None
        self._follow_plans(
            group, options, lambda: KafkaPythonSource.open(group, connection, options.plan_topic)
        )

    def _subscribes(self, consumer: KafkaConsumer) -> bool:
        return consumer.subscription() is not None

    def follow(self, consumer: KafkaConsumer) -> None:
        """Set the assignor's consumer, which then rejoins whenever a new plan arrives.

        Call it before the consumer polls.
        """
        self._client_id = consumer.config["client_id"]
        self._consumer = weakref.ref(consumer)
        self._join = joining(consumer)
        self._follower.rejoin_by(rejoin_request(consumer))

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return the kind of rebalance that this assignor supports."""
        kind = RebalanceProtocol.COOPERATIVE if self._cooperative else RebalanceProtocol.EAGER
        return [kind]

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription that this member joins with.

        Raises
        ------
        ConfigurationError
            The assignor is cooperative and does not know its consumer.
        """
        self._join()
        user_data = self._follower.subscription(self._client_id, self._instance_id)
        version = _COOPERATIVE_VERSION if self._cooperative else _EAGER_VERSION
        owned = self._owned() if self._cooperative else {}
        return ConsumerProtocolSubscription(
            version=_RACK_VERSION if self._rack else version,
            topics=sorted(topics),
            user_data=user_data,
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in owned.items()
            ],
            rack_id=self._rack,
        )

    def assign(
        self, cluster: ClusterMetadata, members: Sequence[Any]
    ) -> dict[str, ConsumerProtocolAssignment]:
        """Return the assignment of all members; called on the group leader."""
        counts = partition_counts(
            [member.metadata.topics for member in members], cluster.partitions_for_topic
        )
        shares, user_data = self._follower.assign([_member(member) for member in members], counts)
        return {
            member_id: ConsumerProtocolAssignment(0, list(share.items()), user_data)
            for member_id, share in shares.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Handle the member's new assignment; called on every member."""
        self._follower.assigned(assignment.user_data, generation)

    def _owned(self) -> dict[str, list[int]]:
        """Return the partitions that the consumer still owns, by topic."""
        consumer = self._consumer() if self._consumer else None
        if consumer is None:
            raise ConfigurationError(
                "PlanAssignor: cooperative=True needs follow(consumer) before the first poll"
            )
        return by_topic(consumer.assignment())


class PlanConsumer(KafkaConsumer):  # type: ignore[misc] # kafka-python is untyped
    """A KafkaConsumer that follows its group's plans.

    Parameters
    ----------
    topics
        Topics to subscribe to, as for KafkaConsumer.
    configs
        As for KafkaConsumer, and the fields of `FollowOptions`. `group_id` is required.
        `partition_assignment_strategy` lists the assignors to use while not all members follow
        plans. By default, this is `range`, Kafka's default assignor. So consumers that use `range`
        can be replaced one at a time. `cooperative` is as for `PlanAssignor`; if it is True, the
        list of assignors is empty by default, and may contain only `CooperativeStickyAssignor`.

    Raises
    ------
    ConfigurationError
        There is no `group_id`.
    """

    def __init__(self, *topics: str, **configs: Any) -> None:
        if not configs.get("group_id"):
            raise ConfigurationError("PlanConsumer: group_id is missing; plans are for groups")
        keep_secrets()
        cooperative = configs.pop("cooperative", False)
        fallback = () if cooperative else (RangePartitionAssignor,)
        others = configs.pop("partition_assignment_strategy", fallback)
        options = FollowOptions.taken_from(configs)
        self.plan_assignor = PlanAssignor(
            configs["group_id"], configs, options, cooperative=cooperative
        )
        try:
            super().__init__(
                *topics, partition_assignment_strategy=(self.plan_assignor, *others), **configs
            )
        except BaseException:
            self.plan_assignor.close()
            raise
        self.plan_assignor.follow(self)
        self._meter: Meter | None = None
        if options.report_work:
            self._meter = Meter(self.config["max_poll_interval_ms"] / 1e3)
            report_work(self, self._meter)
            self.plan_assignor.reports(self._meter)

    def poll(
        self,
        timeout_ms: float = 0,
        max_records: int | None = None,
        update_offsets: bool = True,  # noqa: FBT001, FBT002 - KafkaConsumer's signature
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return the next records, as KafkaConsumer does.

        If reports are on, the lists measure how long the application processes each record.
        """
        meter = self._meter
        if meter is None:
            plain: Batch = super().poll(timeout_ms, max_records, update_offsets)
            return plain
        meter.asked()
        meter.waits()
        try:
            batch = super().poll(timeout_ms, max_records, update_offsets)
        finally:
            meter.waited()
        # KafkaConsumer's iterator sets `update_offsets=False`. Then `__next__` measures times.
        return meter.took(batch) if update_offsets else batch

    def __next__(self) -> ConsumerRecord:
        """Return the next record, as KafkaConsumer does."""
        meter = self._meter
        if meter is None:
            return super().__next__()
        meter.asked()
        record = super().__next__()
        meter.took_one(record.topic, record.partition, record.offset)
        return record

    def close(self, autocommit: bool = True, timeout_ms: int | None = None) -> None:  # noqa: FBT001, FBT002 - KafkaConsumer's signature
        """Leave the group and stop reading plans."""
        try:
            super().close(autocommit=autocommit, timeout_ms=timeout_ms)
        finally:
            self.plan_assignor.close()


def _member(member: Any) -> GroupMember:
    subscription = member.metadata
    return GroupMember.joining(
        member.member_id,
        subscription.topics,
        subscription.user_data,
        instance_id=member.group_instance_id,
        owned={owned.topic: owned.partitions for owned in subscription.owned_partitions or ()},
    )
