"""Groups of the consumer protocol (KIP-848), in which the broker assigns partitions.

Belongs here: describing these groups, for which kafka-python has no message. Belongs elsewhere:
converting the result to a `GroupDescription` (`descriptions`).

librdkafka's admin client also describes these groups, but does not return the subscription, rack
and protocol of each member.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kafka import errors
from kafka.admin import KafkaAdminClient

from fairlead.domain.groups import LiveMember
from fairlead.kafka.messages.consumer_groups import ConsumerGroupDescribeRequest
from fairlead.wire.partitions import Partitions, kafka_uuid

#: The type of these groups, and the value of the consumers' setting `group.protocol`.
CONSUMER: Final = "consumer"
#: Name of Fairlead's server-side assignor, which follows plans.
ASSIGNOR: Final = "fairlead"
#: Client id of a rebalance trigger: a client that joins a group briefly, so that the broker
#: computes a new assignment.
TRIGGER: Final = "fairlead-rebalance-trigger"
#: Prefix of the rack id of a rebalance trigger.
TRIGGER_RACK: Final = "fairlead:"
_CLASSIC_MEMBER: Final = 0


@dataclass(frozen=True, kw_only=True)
class BrokerMember(LiveMember):
    """A member of a group in which the broker assigns partitions; `name` is still empty.

    `topics` has the topics that the member subscribes to by name or with a pattern. A topic that
    matches the pattern is known only if a member with this pattern owns, or will own, a partition
    of the topic.

    Parameters
    ----------
    generation
        The group epoch that the member has reached.
    target
        The member's partitions in the broker's target assignment, ascending.
    classic
        Whether the member uses the classic protocol, because the group is being converted.
    """

    generation: int
    target: Partitions
    classic: bool

    @property
    def is_trigger(self) -> bool:
        """Whether the member is a rebalance trigger and not a consumer."""
        return self.client_id == TRIGGER and (self.rack or "").startswith(TRIGGER_RACK)


@dataclass(frozen=True)
class BrokerGroup:
    """The description of a group in which the broker assigns partitions.

    Parameters
    ----------
    group, state, assignor
        The group id; `Empty`, `Assigning`, `Reconciling`, `Stable` or `Dead`; the assignor's name.
    members
        All members including rebalance triggers, ascending by member id.
    topic_ids
        Maps topics to their ids in Kafka's text format. Has all topics of which a member owns, or
        will own, a partition.
    error
        Why the coordinator does not describe the group; None if it does.
    """

    group: str
    state: str
    assignor: str
    members: tuple[BrokerMember, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None

    @property
    def consumers(self) -> tuple[BrokerMember, ...]:
        """The members that are not rebalance triggers."""
        return tuple(member for member in self.members if not member.is_trigger)

    @property
    def behind(self) -> tuple[BrokerMember, ...]:
        """The consumers that still own partitions for which other members wait.

        A member that waits for partitions has reached the group epoch. A member that still has to
        give up partitions has not reached it.
        """
        newest = max((consumer.generation for consumer in self.consumers), default=0)
        waits = any(
            consumer.generation == newest and consumer.partitions != consumer.target
            for consumer in self.consumers
        )
        return tuple(
            consumer for consumer in self.consumers if waits and consumer.generation < newest
        )


def describe_broker_groups(
    admin: KafkaAdminClient, groups: Sequence[str]
) -> dict[str, BrokerGroup]:
    """Describe groups of the consumer protocol.

    Raises
    ------
    kafka.errors.KafkaError
        A coordinator does not answer. The error of a single group is in its BrokerGroup instead.
    """
    answers: list[Any] = admin._manager.run(_ask, admin, groups)  # noqa: SLF001 - no public way to send
    return {
        described.group_id: _read(described) for answer in answers for described in answer.groups
    }


async def _ask(admin: KafkaAdminClient, groups: Sequence[str]) -> list[Any]:
    by_node: dict[int, list[str]] = defaultdict(list)
    coordinators = await admin._find_coordinator_ids(list(groups))  # noqa: SLF001 - as above
    for group, node in coordinators.items():
        by_node[node].append(group)
    return [
        await admin._manager.send(  # noqa: SLF001 - as above
            ConsumerGroupDescribeRequest(
                group_ids=groups_there, include_authorized_operations=False
            ),
            node_id=node,
        )
        for node, groups_there in by_node.items()
    ]


def _read(described: Any) -> BrokerGroup:
    if described.error_code:
        error = str(errors.for_code(described.error_code)(described.error_message or ""))
        return BrokerGroup(
            described.group_id, described.group_state, described.assignor_name, error=error
        )
    matched = _matched(described.members)
    members = tuple(
        BrokerMember(
            member_id=raw.member_id,
            instance_id=raw.instance_id,
            client_id=raw.client_id,
            name="",
            rack=raw.rack_id or None,
            generation=raw.member_epoch,
            topics=tuple(
                sorted({*raw.subscribed_topic_names, *matched[raw.subscribed_topic_regex or ""]})
            ),
            partitions=_partitions(raw.assignment),
            target=_partitions(raw.target_assignment),
            classic=raw.member_type == _CLASSIC_MEMBER,
        )
        for raw in sorted(described.members, key=lambda raw: str(raw.member_id))
    )
    ids = {
        entry.topic_name: kafka_uuid(entry.topic_id.bytes)
        for raw in described.members
        for entry in _entries(raw)
    }
    return BrokerGroup(
        described.group_id, described.group_state, described.assignor_name, members, ids
    )


def _matched(members: Iterable[Any]) -> dict[str, set[str]]:
    """Return the known topics of each pattern: those in the assignments of its members.

    Coordinators do not report other topics that match a pattern.
    """
    matched: dict[str, set[str]] = {"": set()}
    for raw in members:
        if raw.subscribed_topic_regex:
            topics = matched.setdefault(raw.subscribed_topic_regex, set())
            topics |= {entry.topic_name for entry in _entries(raw)}
    return matched


def _entries(raw: Any) -> list[Any]:
    return [*raw.assignment.topic_partitions, *raw.target_assignment.topic_partitions]


def _partitions(assignment: Any) -> dict[str, tuple[int, ...]]:
    return {
        entry.topic_name: tuple(sorted(entry.partitions))
        for entry in sorted(assignment.topic_partitions, key=lambda entry: str(entry.topic_name))
        if entry.partitions
    }
