"""Follow plans with aiokafka: `PlanConsumer`, or `PlanAssignor` in a consumer of your own.

Belongs here: aiokafka's consumer and assignor interface. Belongs elsewhere: decisions (`follower`),
and reading the plan topic (`plan_source`).

::

    consumer = PlanConsumer(
        "orders", bootstrap_servers="localhost:9092", group_id="orders", client_id="orders-1"
    )
    await consumer.start()

aiokafka has only eager rebalances.
"""

import asyncio
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

from fairlead.errors import ConfigurationError
from fairlead.followers.aiokafka.join import join_once
from fairlead.followers.aiokafka.metadata import subscription
from fairlead.followers.aiokafka.plan_source import AiokafkaSource
from fairlead.followers.aiokafka.reporting import report_work
from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.meter import Batch, Meter
from fairlead.followers.core.plan_assignor import FollowingAssignor
from fairlead.wire.members import GroupMember
from fairlead.wire.partitions import partition_counts


class PlanAssignor(FollowingAssignor, AbstractPartitionAssignor):  # type: ignore[misc] # aiokafka is untyped
    """Assigns partitions by the group's plan; the group leader decides for all members.

    Put an instance first in `partition_assignment_strategy`. aiokafka's own assignors are passed as
    classes, but the consumer also accepts instances. Kafka uses this assignor as soon as every
    member of the group has it. The assignor reads the plan topic on a daemon thread until `close`.
    `PlanConsumer` does all of this automatically.

    Parameters
    ----------
    group
        The group id.
    connection
        AIOKafkaConsumer's connection settings, or its whole configuration.
    options
        How to follow plans.
    """

    name = "fairlead"

    def __init__(
        self, group: str, connection: Mapping[str, Any], options: FollowOptions | None = None
    ) -> None:
        options = options or FollowOptions()
        self._client_id: str = connection.get("client_id", "")
        self._instance_id: str | None = connection.get("group_instance_id")
        self._rack: str = connection.get("client_rack") or ""
        self._follow_plans(
            group, options, lambda: AiokafkaSource.open(group, connection, options.plan_topic)
        )

    def _subscribes(self, consumer: AIOKafkaConsumer) -> bool:
        return bool(consumer._subscription.partitions_auto_assigned())  # noqa: SLF001 - as below

    def follow(self, consumer: AIOKafkaConsumer) -> None:
        """Set the assignor's consumer, which then rejoins whenever a new plan arrives.

        Call it on the consumer's event loop, before the consumer starts.
        """
        loop = asyncio.get_running_loop()
        # The client has no public way to request a rebalance. `request_rejoin` sets a future for
        # which the coordinator's task waits.
        self._consumer = known = weakref.ref(consumer)

        def rejoin() -> None:
            if (coordinator := _coordinator(known())) is not None:
                loop.call_soon_threadsafe(coordinator.request_rejoin)

        self._follower.rejoin_by(rejoin)

    async def read_ahead(self) -> None:
        """Wait until the plan topic has been read to its end.

        Call this before joining. Otherwise `assign` may wait for plans and block the event loop.
        """
        await asyncio.to_thread(self._follower.read_ahead)

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return the subscription that this member joins with."""
        if self._consumer and (coordinator := _coordinator(self._consumer())) is not None:
            join_once(coordinator)
        user_data = self._follower.subscription(self._client_id, self._instance_id)
        return subscription(sorted(topics), user_data, self._rack)

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Return the assignment of all members; called on the group leader.

        Blocks the event loop at most for `read_timeout_s`, and only if another member has read a
        newer plan.
        """
        counts = partition_counts(
            [member.subscription for member in members.values()], cluster.partitions_for_topic
        )
        shares, user_data = self._follower.assign(
            [
                GroupMember.joining(member_id, metadata.subscription, metadata.user_data)
                for member_id, metadata in members.items()
            ],
            counts,
        )
        return {
            member_id: ConsumerProtocolMemberAssignment(0, list(share.items()), user_data)
            for member_id, share in shares.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Handle the member's new assignment; called on every member."""
        coordinator = _coordinator(self._consumer()) if self._consumer else None
        generation = -1 if coordinator is None else coordinator.generation
        self._follower.assigned(assignment.user_data, generation)


class PlanConsumer(AIOKafkaConsumer):  # type: ignore[misc] # aiokafka is untyped
    """An AIOKafkaConsumer that follows its group's plans.

    Parameters
    ----------
    topics
        Topics to subscribe to, as for AIOKafkaConsumer.
    configs
        As for AIOKafkaConsumer, and the fields of `FollowOptions`. `group_id` is required.
        `partition_assignment_strategy` lists the assignors to use while not all members follow
        plans. By default, these are `range` and `roundrobin`, the default assignors of Kafka and
        aiokafka. So consumers that use these assignors can be replaced one at a time.

    Raises
    ------
    ConfigurationError
        There is no `group_id`.
    """

    def __init__(self, *topics: str, **configs: Any) -> None:
        if not configs.get("group_id"):
            self._closed = True  # avoids a warning when the consumer is deleted
            raise ConfigurationError("PlanConsumer: group_id is missing; plans are for groups")
        others = configs.pop(
            "partition_assignment_strategy", (RangePartitionAssignor, RoundRobinPartitionAssignor)
        )
        options = FollowOptions.taken_from(configs)
        self.plan_assignor = PlanAssignor(configs["group_id"], configs, options)
        try:
            super().__init__(
                *topics, partition_assignment_strategy=(self.plan_assignor, *others), **configs
            )
            self.plan_assignor.follow(self)
        except BaseException:
            self.plan_assignor.close()
            raise
        longest_s = configs.get("max_poll_interval_ms", 300_000) / 1e3
        self._meter = Meter(longest_s) if options.report_work else None
        self._event_loop = asyncio.get_running_loop()
        #: Returns the task that last asked for records, if it still exists.
        self._taker: Callable[[], asyncio.Task[Any] | None] = lambda: None

    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord:
        """Return the next record, as AIOKafkaConsumer does."""
        meter = self._meter
        if meter is None:
            return await super().getone(*partitions)
        self._asks(meter)
        try:
            record = await super().getone(*partitions)
        finally:
            meter.waited()
        meter.took_one(record.topic, record.partition, record.offset)
        return record

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records, as AIOKafkaConsumer does.

        If reports are on, the lists measure how long the application processes each record.
        """
        call = super().getmany(*partitions, timeout_ms=timeout_ms, max_records=max_records)
        meter = self._meter
        if meter is None:
            plain: Batch = await call
            return plain
        self._asks(meter)
        try:
            batch = await call
        finally:
            meter.waited()
        return meter.took(batch)

    def _asks(self, meter: Meter) -> None:
        """Remember the task that asks for records; stop measuring if there are several tasks."""
        meter.asked()
        task = asyncio.current_task(self._event_loop)  # much slower without the argument
        if task is not (taker := self._taker()) and task is not None:
            if taker is not None and not taker.done():
                meter.give_up()  # the tasks' processing times cannot be distinguished
            self._taker = weakref.ref(task)

    async def start(self) -> None:
        """Read the plan, connect, and join the group."""
        await self.plan_assignor.read_ahead()
        await super().start()
        if self._meter is not None:
            report_work(self, self._meter)
            self.plan_assignor.reports(self._meter)

    async def stop(self) -> None:
        """Leave the group and stop reading plans."""
        try:
            await super().stop()
        finally:
            await asyncio.to_thread(self.plan_assignor.close)


def _coordinator(consumer: AIOKafkaConsumer | None) -> Any:
    """Return the consumer's coordinator; None before it has started."""
    return None if consumer is None else consumer._coordinator  # noqa: SLF001 - there is no other way
