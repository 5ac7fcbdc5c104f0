"""Follow plans with kafka-python: `PlanConsumer`, or `PlanAssignor` in a consumer of your own.

Belongs here: what touches kafka-python's consumer and its assignor interface. Does not: any
decision (`follower` and below), nor reading the plan topic (`kafka_python_source`).

::

    consumer = PlanConsumer(
        "orders", bootstrap_servers="localhost:9092", group_id="orders", client_id="orders-1"
    )
"""

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from kafka import KafkaConsumer
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from fairlead.errors import ConfigurationError
from fairlead.followers.follower import Follower, FollowerStatus, FollowOptions
from fairlead.followers.kafka_python_source import KafkaPythonSource
from fairlead.followers.members import GroupMember, decode_subscription


class PlanAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # kafka-python is untyped
    """Assigns partitions as the group's plan says; the group leader reads it and decides for all.

    May stand in a list before Kafka's own eager assignors; it is used once every member of the
    group has it. Reads the plan topic on a daemon thread until `close`. `PlanConsumer` is the
    shorter way.

    Parameters
    ----------
    group
        The group id.
    connection
        How to reach the cluster: `bootstrap_servers` and whatever else KafkaConsumer needs for it.
        A consumer's whole configuration will do.
    options
        How to follow.
    """

    name = "fairlead"

    def __init__(
        self, group: str, connection: Mapping[str, Any], options: FollowOptions | None = None
    ) -> None:
        options = options or FollowOptions()
        self._client_id: str = {**KafkaConsumer.DEFAULT_CONFIG, **connection}["client_id"]
        self._follower = Follower(
            group,
            options,
            lambda: KafkaPythonSource.open(group, connection, options.plan_topic),
        )

    @property
    def plan_version(self) -> int | None:
        """The plan that this member's assignment follows; None: the fallback, or none yet."""
        return self._follower.plan_version

    def status(self) -> FollowerStatus:
        """Return what this member does at the moment."""
        return self._follower.status()

    def follow(self, consumer: KafkaConsumer) -> None:
        """Let new plans make this assignor's consumer rejoin. Call before its first poll."""
        self._client_id = consumer.config["client_id"]
        # The client has no public way to ask for a rebalance. This one sets a flag that the next
        # poll honours, so any thread may call it.
        request = weakref.WeakMethod(consumer._coordinator.request_rejoin)  # noqa: SLF001

        def rejoin() -> None:
            if (ask := request()) is not None:
                ask()

        self._follower.rejoin_by(rejoin)

    def close(self) -> None:
        """Stop reading the plan topic."""
        self._follower.close()

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return the subscription this member joins with."""
        user_data = self._follower.subscription(self._client_id)
        return ConsumerProtocolSubscription(0, sorted(topics), user_data)

    def assign(
        self, cluster: ClusterMetadata, members: Sequence[Any]
    ) -> dict[str, ConsumerProtocolAssignment]:
        """Decide for the whole group; called on its leader."""
        topics = {topic for member in members for topic in member.metadata.topics}
        counts = {
            topic: len(partitions)
            for topic in topics
            if (partitions := cluster.partitions_for_topic(topic))
        }
        shares, user_data = self._follower.assign([_member(member) for member in members], counts)
        return {
            member_id: ConsumerProtocolAssignment(0, list(share.items()), user_data)
            for member_id, share in shares.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Note what the new assignment follows; called on every member."""
        self._follower.assigned(assignment.user_data, generation)


class PlanConsumer(KafkaConsumer):  # type: ignore[misc] # kafka-python is untyped
    """A KafkaConsumer whose group follows its plans.

    Parameters
    ----------
    topics
        What to subscribe to, as for KafkaConsumer.
    configs
        As for KafkaConsumer, and the fields of `FollowOptions` beside them. `group_id` is needed.
        `partition_assignment_strategy` holds the eager assignors behind the plan's, for as long as
        not all members follow plans; default: range, so that consumers with Kafka's default can be
        replaced one by one.

    Raises
    ------
    ConfigurationError
        There is no `group_id`.
    """

    def __init__(self, *topics: str, **configs: Any) -> None:
        if not configs.get("group_id"):
            raise ConfigurationError("PlanConsumer: group_id is missing; plans are for groups")
        others = configs.pop("partition_assignment_strategy", (RangePartitionAssignor,))
        given = [field.name for field in fields(FollowOptions) if field.name in configs]
        options = FollowOptions(**{name: configs.pop(name) for name in given})
        self.plan_assignor = PlanAssignor(configs["group_id"], configs, options)
        try:
            super().__init__(
                *topics, partition_assignment_strategy=(self.plan_assignor, *others), **configs
            )
        except BaseException:
            self.plan_assignor.close()
            raise
        self.plan_assignor.follow(self)

    def close(self, autocommit: bool = True, timeout_ms: int | None = None) -> None:  # noqa: FBT001, FBT002 - KafkaConsumer's signature
        """Leave the group and stop reading plans."""
        try:
            super().close(autocommit=autocommit, timeout_ms=timeout_ms)
        finally:
            self.plan_assignor.close()


def _member(member: Any) -> GroupMember:
    client_id, seen_offset = decode_subscription(member.metadata.user_data)
    return GroupMember(
        member_id=member.member_id,
        topics=tuple(member.metadata.topics),
        instance_id=member.group_instance_id,
        client_id=client_id,
        seen_offset=seen_offset,
    )
