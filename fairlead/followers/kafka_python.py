"""Follow plans with kafka-python: `PlanConsumer`, or `PlanAssignor` in a consumer of your own.

Belongs here: what touches kafka-python. Does not: any decision (`decision`, `fit`, `rejoin`).

Examples
--------
>>> consumer = PlanConsumer(  # doctest: +SKIP
...     "orders", bootstrap_servers="localhost:9092", group_id="orders", client_id="orders-1"
... )
"""

import logging
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.partitioner.default import murmur2
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from fairlead.followers.decision import Decision, decide
from fairlead.followers.members import (
    AssignmentNote,
    GroupMember,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from fairlead.followers.plan_cache import PlanCache, PlanRecord
from fairlead.followers.plan_reader import PlanReader
from fairlead.followers.rejoin import RejoinSchedule

log = logging.getLogger(__name__)

PLAN_TOPIC: Final = "fairlead.plans"


@dataclass(frozen=True)
class FollowerStatus:
    """What a follower does at the moment, for metrics and for a person on call.

    Parameters
    ----------
    group, plan_topic
        The group id and where its plans come from.
    plan_version
        The plan that the present assignment follows; None: the fallback, or none yet.
    latest_version
        The newest plan read; None: there is none.
    latest_problem
        Why the newest record was skipped, if it was.
    caught_up
        Whether the plan topic has been read to its end.
    records_skipped
        Unreadable or badly signed records since the start.
    rebalances
        Assignments received through this assignor.
    rejoins_asked
        Rebalances asked for because of a newer plan.
    fallback_reason
        Why the group uses range, where this member, as leader, decided so.
    """

    group: str
    plan_topic: str
    plan_version: int | None
    latest_version: int | None
    latest_problem: str | None
    caught_up: bool
    records_skipped: int
    rebalances: int
    rejoins_asked: int
    fallback_reason: str | None


class PlanAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # kafka-python is untyped
    """Assigns partitions as the group's plan says; the group leader reads it and decides for all.

    Reads the plan topic on a daemon thread from construction to `close`. May stand in a list before
    Kafka's own assignors: it is used once every member of the group has it.

    Parameters
    ----------
    group
        The group id.
    connection
        How to reach the cluster: `bootstrap_servers` and whatever else KafkaConsumer needs for it.
        A consumer's whole configuration will do.
    plan_topic
        Where plans are published.
    client_id
        The consumer's `client_id`, its name in plans; default: the one in `connection`. Where
        several members have the same, or none is given, their member ids are their names.
    signing_key
        With it, only plans with a matching signature are followed.
    read_timeout_s
        How long a rebalance may wait for the plan topic, where the cache is known to be behind.
    rejoin_jitter_s
        After a new plan, the group rebalances within this time; None: at the next rebalance that
        comes anyway. Takes effect by `follow`.
    """

    name = "fairlead"

    def __init__(
        self,
        group: str,
        connection: Mapping[str, Any],
        *,
        plan_topic: str = PLAN_TOPIC,
        client_id: str | None = None,
        signing_key: bytes | None = None,
        read_timeout_s: float = 5.0,
        rejoin_jitter_s: float | None = 5.0,
    ) -> None:
        self._group = group
        self._plan_topic = plan_topic
        self._client_id = client_id or connection.get("client_id")
        self._read_timeout_s = read_timeout_s
        self._lock = threading.Lock()
        self._rejoin = None if rejoin_jitter_s is None else RejoinSchedule(rejoin_jitter_s)
        self._coordinator: weakref.ref[Any] | None = None
        self._decided_offset: int | None = None
        self._note = AssignmentNote()
        self._fallback_reason: str | None = None
        self._rebalances = self._rejoins_asked = 0
        self._cache = PlanCache(group, signing_key=signing_key)
        self._reader = PlanReader(
            group,
            lambda: _KafkaPythonSource(group, connection, plan_topic),
            self._cache,
            self._ask_if_due,
        )
        self._reader.start()

    @property
    def plan_version(self) -> int | None:
        """The plan that this member's assignment follows; None: the fallback, or none yet."""
        return self._note.plan_version

    def status(self) -> FollowerStatus:
        """Return what this follower does at the moment."""
        state = self._reader.state
        return FollowerStatus(
            group=self._group,
            plan_topic=self._plan_topic,
            plan_version=self._note.plan_version,
            latest_version=state.plan.version if state.plan else None,
            latest_problem=state.problem,
            caught_up=self._reader.caught_up,
            records_skipped=self._cache.skipped,
            rebalances=self._rebalances,
            rejoins_asked=self._rejoins_asked,
            fallback_reason=self._fallback_reason,
        )

    def follow(self, consumer: KafkaConsumer) -> None:
        """Let new plans make this consumer, which has this assignor, rejoin its group."""
        # The coordinator's request is a flag that the next poll honours: safe from any thread.
        # The client has no public way to ask.
        self._coordinator = weakref.ref(consumer._coordinator)  # noqa: SLF001

    def close(self) -> None:
        """Stop reading the plan topic."""
        self._reader.close()

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        """Return this member's subscription; called when it begins to join."""
        with self._lock:
            if self._rejoin:
                self._rejoin.unsettle()
            self._decided_offset = None
        # A member that rejoins with what the coordinator has already gets its old assignment back:
        # the offset makes the subscription differ, and tells the leader what there is to know.
        user_data = encode_subscription(self._client_id, self._reader.state.offset)
        return ConsumerProtocolSubscription(0, sorted(topics), user_data)

    def assign(
        self, cluster: ClusterMetadata, members: Sequence[Any]
    ) -> dict[str, ConsumerProtocolAssignment]:
        """Decide for the whole group; called on its leader."""
        group_members = [_member(member) for member in members]
        heard = max(member.seen_offset for member in group_members)
        state = self._reader.current(at_least=heard, timeout_s=self._read_timeout_s)
        topics = {topic for member in group_members for topic in member.topics}
        counts = {
            topic: len(partitions)
            for topic in topics
            if (partitions := cluster.partitions_for_topic(topic))
        }
        decision = decide(state, group_members, counts, now=datetime.now(UTC))
        self._log(decision, len(group_members))
        with self._lock:
            self._decided_offset = state.offset
        user_data = encode_assignment(
            AssignmentNote(decision.plan_version, max(heard, state.offset))
        )
        return {
            member_id: ConsumerProtocolAssignment(
                0,
                [(topic, partitions.tolist()) for topic, partitions in share.items()],
                user_data,
            )
            for member_id, share in decision.shares.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Note which plan the new assignment follows; called on every member."""
        note = decode_assignment(assignment.user_data)
        log.info(
            "Group %s, generation %d: the assignment follows %s",
            self._group,
            generation,
            "range" if note.plan_version is None else f"plan version {note.plan_version}",
        )
        with self._lock:
            self._note = note
            self._rebalances += 1
            if self._rejoin:
                decided = self._decided_offset
                self._rejoin.settle(note.seen_offset if decided is None else decided)

    def _log(self, decision: Decision, members: int) -> None:
        if decision.reason is None:
            log.info(
                "Group %s: leader assigns plan version %s to %d members",
                self._group,
                decision.plan_version,
                members,
            )
        elif decision.reason != self._fallback_reason:
            log.warning("Group %s: leader falls back to range: %s", self._group, decision.reason)
        self._fallback_reason = decision.reason

    def _ask_if_due(self) -> None:
        """Ask for a rebalance if a newer plan is due; runs on the reader's thread."""
        coordinator = self._coordinator() if self._coordinator else None
        if coordinator is None or self._rejoin is None:
            return
        state = self._reader.state
        with self._lock:
            if not self._rejoin.due(seen_offset=state.offset, now=time.monotonic()):
                return
            self._rejoins_asked += 1
        log.info(
            "Group %s: asking to rejoin for %s",
            self._group,
            f"plan version {state.plan.version}" if state.plan else "the fallback: no plan",
        )
        coordinator.request_rejoin()


class PlanConsumer(KafkaConsumer):  # type: ignore[misc] # kafka-python is untyped
    """A KafkaConsumer whose group follows its plan.

    Parameters
    ----------
    topics
        What to subscribe to, as for KafkaConsumer.
    plan_topic, signing_key, read_timeout_s, rejoin_jitter_s
        As for PlanAssignor.
    configs
        As for KafkaConsumer; `group_id` is needed. `partition_assignment_strategy` are the
        assignors behind the plan's, used while not all members follow plans; default: range, so
        that consumers with Kafka's default can be replaced one by one.
    """

    def __init__(
        self,
        *topics: str,
        plan_topic: str = PLAN_TOPIC,
        signing_key: bytes | None = None,
        read_timeout_s: float = 5.0,
        rejoin_jitter_s: float | None = 5.0,
        **configs: Any,
    ) -> None:
        others = configs.pop("partition_assignment_strategy", (RangePartitionAssignor,))
        self.plan_assignor = PlanAssignor(
            configs["group_id"],
            configs,
            plan_topic=plan_topic,
            signing_key=signing_key,
            read_timeout_s=read_timeout_s,
            rejoin_jitter_s=rejoin_jitter_s,
        )
        try:
            super().__init__(
                *topics, partition_assignment_strategy=(self.plan_assignor, *others), **configs
            )
        except BaseException:
            self.plan_assignor.close()
            raise
        self.plan_assignor.follow(self)

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the consumer and its plan reader."""
        try:
            super().close(*args, **kwargs)
        finally:
            self.plan_assignor.close()


class _KafkaPythonSource:
    """The plan topic's partition that holds a group's key, read by a consumer of its own."""

    def __init__(self, group: str, connection: Mapping[str, Any], topic: str) -> None:
        self._consumer = KafkaConsumer(
            **{
                **{key: value for key, value in connection.items() if key not in _NOT_FOR_PLANS},
                "client_id": f"{connection.get('client_id') or group}-plans",
                "auto_offset_reset": "earliest",
                "enable_auto_commit": False,
                "allow_auto_create_topics": False,
                "fetch_max_wait_ms": 5000,
                "bootstrap_timeout_ms": 10_000,
            }
        )
        try:
            self._partition = self._partition_of(topic, group)
            self._consumer.assign([self._partition])
            self._end = self._consumer.end_offsets([self._partition])[self._partition]
        except BaseException:
            self._consumer.close()
            raise

    def _partition_of(self, topic: str, group: str) -> TopicPartition:
        partitions = self._consumer.partitions_for_topic(topic)
        if not partitions:
            raise LookupError(f"topic {topic} does not exist or may not be read")
        return TopicPartition(topic, (murmur2(group.encode()) & 0x7FFFFFFF) % len(partitions))

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Wait at most `timeout_s` for the next records."""
        batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        return [
            PlanRecord(record.offset, record.key, record.value, tuple(record.headers))
            for record in batches.get(self._partition, ())
        ]

    def at_end(self) -> bool:
        """Whether everything that was there when this was opened has been read."""
        position = self._consumer.position(self._partition, timeout_ms=1000)
        return position is not None and position >= self._end

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


#: What a consumer is configured with that does not concern how the cluster is reached.
_NOT_FOR_PLANS: Final = frozenset(
    {
        "group_id",
        "group_instance_id",
        "key_deserializer",
        "value_deserializer",
        "partition_assignment_strategy",
        "consumer_timeout_ms",
        "max_poll_records",
        "fetch_min_bytes",
        "metric_reporters",
        "default_offset_commit_callback",
    }
)


def _member(member: Any) -> GroupMember:
    client_id, seen_offset = decode_subscription(member.metadata.user_data)
    return GroupMember(
        member_id=member.member_id,
        topics=tuple(member.metadata.topics),
        instance_id=member.group_instance_id,
        client_id=client_id,
        seen_offset=seen_offset,
    )
