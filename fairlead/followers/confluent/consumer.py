"""Follow plans with confluent-kafka: `PlanConsumer`.

Belongs here: confluent-kafka's consumer and its callbacks. Belongs elsewhere: the effect of a
callback (`member`), agreement between members (`generation`, `agreement_round`), and the log
(`agreement_log`).

librdkafka has no pluggable assignors. So Kafka's `range` assigns the partitions, and then the
members redistribute them in an agreement round. Ordinary consumers in the same group keep the
partitions that `range` assigned to them.

::

    consumer = PlanConsumer(
        {"bootstrap.servers": "localhost:9092", "group.id": "orders", "client.id": "orders-1"}
    )
    consumer.subscribe(["orders"])
"""

import random
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from fairlead.common.librdkafka import kafka_error
from fairlead.errors import ConfigurationError
from fairlead.followers.confluent.agreement_log import KafkaCoordinationTopic
from fairlead.followers.confluent.config import check, connection_of
from fairlead.followers.confluent.log_listener import LogListener
from fairlead.followers.confluent.member import Event, FollowingMember
from fairlead.followers.confluent.plan_source import shared_reader
from fairlead.followers.confluent.reporting import Reporting, without_reports
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.status import FollowerStatus
from fairlead.wire.partitions import Pair
from fairlead.wire.seals import read_secrets

RebalanceCallback = Callable[[Consumer, list[TopicPartition]], None]

COORDINATION_TOPIC: Final = "fairlead.coordination"
_METADATA: Final = b"CGMDv2:"
#: Seconds. An exception in a callback ends confluent-kafka's `poll` early only if the time-out of
#: `poll` is less than 0.2 s.
_CALL_S: Final = 0.199
#: Seconds. Assumed duration of a `poll` with the time-out `_CALL_S`.
_CALLED_S: Final = 0.2


class _BeganError(Exception):
    """Ends a `poll` that waits for records, because a generation has begun."""


class PlanConsumer(Consumer):
    """A Consumer that follows the plans of its group.

    Use it like a Consumer, from one thread. Members agree on an assignment during calls of `poll`
    and `consume`. These calls observe their timeout. But if a broker does not respond during a
    rebalance, a call may take two seconds longer, or four if the coordination topic must be
    created. `consume` returns as soon as there is a message. Rebalance callbacks receive the
    partitions that this consumer really owns, not the partitions that `range` assigned.

    Parameters
    ----------
    config
        As for Consumer. `group.id` is required. Give each consumer its own `client.id`, because
        plans identify consumers by their `client.id`.
    options
        How to follow plans.
    coordination_topic
        The topic through which the members of a group agree on an assignment; created if missing.
    group_secret
        A secret of at least 16 bytes, the same for all members of the group. Members accept only
        records that are authenticated with the secret, so that no other writer of the coordination
        topic can act as a member. While you change the secret, give several secrets, separated by
        commas. None: records are not authenticated.
    kwargs
        As for Consumer: more configuration, `logger`, callbacks.

    Raises
    ------
    ConfigurationError
        A setting is incompatible with plans: static membership, a partition assignment strategy
        other than `range`, `group.protocol=consumer`; or `group_secret` is empty or short.

    Notes
    -----
    All members must subscribe to the same topics. A member whose topics differ from the group's
    most common subscription leaves the group, and its `poll` raises a ConfigurationError. The other
    members continue.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        options: FollowOptions | None = None,
        coordination_topic: str = COORDINATION_TOPIC,
        group_secret: str | None = None,
        **kwargs: Any,
    ) -> None:
        settings, secrets = check({**(config or {}), **kwargs}), read_secrets(group_secret)
        options = options or FollowOptions()
        self._reporting = Reporting(settings, report=options.report_work)
        self._meter = self._reporting.meter
        super().__init__(self._reporting.settings)
        self._callbacks: dict[Event, RebalanceCallback | None] = {}
        self._closed = self._waiting = self._disturbed = False
        group, connection = settings["group.id"], connection_of(settings)
        clock, rng = Clock(), random.Random()  # noqa: S311 - jitter need not be secret
        reader = shared_reader(group, connection, options)
        self._dropped = weakref.finalize(self, reader.stop)  # in case `close` is never called
        topic = KafkaCoordinationTopic(group, connection, coordination_topic, secrets)
        self._member = FollowingMember(
            group=group,
            client_id=settings.get("client.id", "rdkafka"),
            options=options,
            client=_Client(self),
            listener=LogListener(group, topic, clock, rng),
            reader=reader,
            clock=clock,
            rng=rng,
        )

    def status(self) -> FollowerStatus:
        """Return the present status of this consumer's plan follower."""
        status = self._member.status(() if self._closed else _Client(self).owned() or ())
        return replace(status, reported=self._reporting.reported_work())

    def subscribe(
        self,
        topics: Sequence[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Subscribe to topics by name, as with Consumer; patterns raise an error.

        The consumer joins its group once it has read the coordination topic, in this call or in a
        later `poll`.

        Raises
        ------
        ConfigurationError
            A topic is a pattern; `topics` is empty; or the coordination topic is compacted, or is
            missing and this client is not permitted to create it.
        TypeError
            `topics` is a string, or contains values that are not strings.
        RuntimeError
            The consumer is closed.
        """
        if isinstance(topics, str):
            raise TypeError(f"PlanConsumer: topics is the text {topics!r}; give a list of names")
        if self._closed:
            super().subscribe([])  # raises the client's error for a closed consumer
        topics = list(topics)
        if not all(isinstance(topic, str) for topic in topics):
            raise TypeError(f"PlanConsumer: topics are {topics!r}; give a list of names")
        if not topics:
            raise ConfigurationError(
                "PlanConsumer: the list of topics is empty; to leave the group, use unsubscribe()"
            )
        if patterns := [topic for topic in topics if topic.startswith("^")]:
            raise ConfigurationError(
                f"PlanConsumer: {patterns[0]} is a pattern; members must subscribe to the same "
                "topics, which patterns cannot promise. Name the topics"
            )
        self._callbacks = {
            "assign": on_assign,
            "revoke": on_revoke,
            "lost": on_lost or on_revoke,
        }
        self._member.subscribe(topics)

    def unsubscribe(self) -> None:
        """Leave the group."""
        self._store()
        self._member.unsubscribe()

    def poll(self, timeout: float | None = -1) -> Message | None:
        """Return the next message or event, as Consumer does."""
        if self._closed:
            return super().poll(0)  # raises the client's error for a closed consumer
        self._meter.asked()
        message = self._member.fetch(self._wait, timeout, nothing=None)
        if not self._reporting.reports:
            return message
        if message is None:
            self._store()
        elif message.error() is None:
            self._reporting.took(self, message)
        return message

    def consume(self, num_messages: int = 1, timeout: float | None = -1) -> list[Message]:
        """Return up to `num_messages` messages, waiting at most `timeout` for the first.

        If reports are on, the returned list measures how long the application processes each
        message.
        """
        consume = super().consume
        if self._closed:
            return consume(num_messages, 0)
        self._meter.asked()

        def fetch(wait_s: float) -> list[Message]:
            messages = consume(num_messages, 0)
            if messages or not num_messages or not wait_s:
                return messages
            message = self._wait(wait_s)
            return [] if message is None else [message]

        nothing: list[Message] = []
        messages = self._member.fetch(fetch, timeout, nothing=nothing)
        if not self._reporting.reports:
            return messages
        if messages:
            return self._reporting.took_list(self, messages)
        self._store()
        return messages

    def store_offsets(self, *args: Any, **kwargs: Any) -> None:
        """Store offsets for the next commit, as Consumer does."""
        super().store_offsets(**self._reporting.with_reports(self, args, kwargs))

    def commit(self, *args: Any, **kwargs: Any) -> list[TopicPartition] | None:
        """Commit offsets, as Consumer does."""
        if self._closed:
            return super().commit(*args, **kwargs)  # raises an error for a closed consumer
        self._store()
        committed = super().commit(**self._reporting.with_reports(self, args, kwargs))
        return None if committed is None else without_reports(committed)

    def seek(self, partition: TopicPartition) -> None:
        """Continue from another offset, as Consumer does."""
        self._store()
        super().seek(partition)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Stop fetching from some partitions, as Consumer does."""
        super().pause(partitions)
        self._reporting.paused |= {(its.topic, its.partition) for its in partitions}

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Fetch from paused partitions again, as Consumer does."""
        super().resume(partitions)
        self._reporting.paused -= {(its.topic, its.partition) for its in partitions}

    def _wait(self, wait_s: float) -> Message | None:
        """Wait for the next message or event, for a rebalance, or for a change of the plan.

        An idle consumer spends its time in this method, so this method makes few calls.
        """
        # Use poll(), because an exception in a callback does not end consume().
        poll, member = super().poll, self._member
        self._waiting, self._disturbed = True, False
        try:
            message = poll(0)
            if message is not None or wait_s <= 0:
                return message
            self._store()
            self._meter.waits()
            while True:
                message = poll(min(wait_s, _CALL_S))
                wait_s -= _CALLED_S
                if message is not None or wait_s <= 0 or self._disturbed or member.news:
                    return message
        except _BeganError as began:
            began.__traceback__ = None  # the client keeps the exception; free its stack frames
            return None
        finally:
            self._waiting = False
            self._meter.waited()

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign partitions, as Consumer does. Call in `on_assign`, for example to set offsets."""
        self._member.touched = True
        self._store()
        super().assign(partitions)
        self._reporting.assignment_changed()

    def unassign(self) -> None:
        """Remove the assignment, as Consumer does. Call in `on_revoke`."""
        self._member.touched = True
        self._store()
        super().unassign()
        self._reporting.assignment_changed()

    def close(self) -> None:
        """Leave the group and stop following plans; has no effect if already closed."""
        if self._closed:
            return
        # Carry out all steps, even if one of them raises an exception.
        try:
            self._meter.asked()
            self._store()
            self._closed = True
            # librdkafka aborts if it is closed while a subscription is pending.
            super().unsubscribe()
        finally:
            try:
                super().close()
            finally:
                self._dropped.detach()
                self._member.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._member.assigned([(partition.topic, partition.partition) for partition in partitions])
        if self._waiting:
            raise _BeganError  # makes the client return from `poll`

    def _on_revoke(self, _: Consumer, __: list[TopicPartition]) -> None:
        self._disturbed = True
        self._store()
        self._member.revoked()
        self._reporting.assignment_changed()

    def _on_lost(self, _: Consumer, __: list[TopicPartition]) -> None:
        self._disturbed = True
        self._member.lost()
        self._reporting.assignment_changed()

    def _store(self) -> None:
        """Store the offsets of all messages returned to the application."""
        self._reporting.store(self)


class _Client:
    """Implements `GroupClient` for a PlanConsumer."""

    def __init__(self, consumer: PlanConsumer) -> None:
        self._reference = weakref.ref(consumer)

    @property
    def _consumer(self) -> PlanConsumer:
        consumer = self._reference()
        assert consumer is not None  # noqa: S101 - all calls come through it
        return consumer

    def identity(self) -> tuple[int, str]:
        """Return the generation and member id, read atomically; (-1, "") outside a group."""
        raw = bytes(self._consumer.consumer_group_metadata())
        if not raw.startswith(_METADATA):
            raise ConfigurationError(
                f"PlanConsumer: this confluent-kafka's group metadata begins with {raw[:7]!r}, "
                f"not {_METADATA!r}; use a version between 2.8 and 2.16"
            )
        (generation,) = struct.unpack_from("<i", raw, len(_METADATA))
        member = raw[len(_METADATA) + 4 :].split(b"\0")[1].decode()
        return generation, member

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group, or join it again."""
        consumer = self._consumer
        Consumer.subscribe(
            consumer,
            list(topics),
            on_assign=consumer._on_assign,  # noqa: SLF001 - defined in this module
            on_revoke=consumer._on_revoke,  # noqa: SLF001
            on_lost=consumer._on_lost,  # noqa: SLF001
        )

    def unsubscribe(self) -> None:
        """Leave the group."""
        Consumer.unsubscribe(self._consumer)

    def own(self, share: Sequence[Pair]) -> None:
        """Assign only these partitions to the consumer."""
        Consumer.assign(self._consumer, _named(share))

    def disown(self) -> None:
        """Assign no partitions to the consumer."""
        try:
            Consumer.unassign(self._consumer)
        except KafkaException as error:
            _raise_unless_closed(error)

    def owned(self) -> list[Pair] | None:
        """Return the consumer's assigned partitions; None: the client is closing."""
        try:
            owned = self._consumer.assignment()
        except KafkaException as error:
            _raise_unless_closed(error)
            return None
        return [(partition.topic, partition.partition) for partition in owned]

    def notify(self, event: Event, share: Sequence[Pair]) -> None:
        """Call the application's callback for this event, if there is one."""
        if callback := self._consumer._callbacks.get(event):  # noqa: SLF001 - as above
            callback(self._consumer, _named(share))


def _raise_unless_closed(error: KafkaException) -> None:
    """Raise the error, unless its code means that the client is closing.

    Callbacks also run during `close`, when the client may have left its group already. An exception
    in such a callback would become a KafkaError that the application cannot catch.
    """
    if kafka_error(error).code() != KafkaError._DESTROY:
        raise error


def _named(share: Sequence[Pair]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, number in share]
