"""The members of a consumer group, from the coordinator's description.

Belongs here: decoding the descriptions of classic and consumer groups, classifying their errors,
and naming the members as in plans. Belongs elsewhere: requesting descriptions (`gateway`,
`consumer_protocol`), and offsets (`offsets`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fairlead.common.words import listed
from fairlead.domain.groups import GroupDescription, GroupProblem, LiveMember
from fairlead.errors import GroupAbsentError, GroupError, GroupUnsettledError
from fairlead.kafka.consumer_protocol import CONSUMER, TRIGGER, BrokerGroup
from fairlead.wire.members import member_names

STABLE: Final = "Stable"
EMPTY: Final = "Empty"
DEAD: Final = "Dead"
REBALANCING: Final = frozenset(
    {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
)
#: The protocol type of all consumer groups; not the group type `consumer` (KIP-848).
CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_ABSENT: Final = "The group does not exist or was deleted"
_UNSETTLED: Final = "The group is rebalancing ({}): its members' partitions may still change"
_NOT_DESCRIBED: Final = "The coordinator does not describe the group: "
#: Parts of kafka-python's error messages, and the problems they mean; the first match decides.
_PROBLEMS: Final = {
    "not a classic group": GroupProblem.OTHER_TYPE,
    "GroupIdNotFoundError": GroupProblem.ABSENT,
    "NotCoordinator": GroupProblem.NOT_COORDINATOR,
    "CoordinatorNotAvailable": GroupProblem.COORDINATOR_MOVING,
    "CoordinatorLoadInProgress": GroupProblem.COORDINATOR_MOVING,
}
#: Problems with the coordinator after which a request is repeated.
MOVING: Final = frozenset({GroupProblem.COORDINATOR_MOVING, GroupProblem.NOT_COORDINATOR})
#: The exceptions for some problems. For all other problems: `GroupUnsettledError`.
_EXCEPTIONS: Final[Mapping[GroupProblem | None, type[GroupError]]] = {
    None: GroupError,
    GroupProblem.ABSENT: GroupAbsentError,
    GroupProblem.OTHER_TYPE: GroupError,
}
#: The only character that Kafka accepts in ids and Postgres does not.
NUL: Final = "\0"

_LONGEST_TOPIC: Final = 249
#: Topic names that Kafka allows (see Kafka's class `org.apache.kafka.common.internals.Topic`).
_TOPIC_NAME: Final = re.compile(rf"(?!\.\.?\Z)[A-Za-z0-9._-]{{1,{_LONGEST_TOPIC}}}")

#: The kind of an error, and the error's message; None if the group can be planned.
_Refusal = tuple[GroupProblem | None, str | None]


def problem_in(error: str) -> GroupProblem:
    """Return the kind of a coordinator's error from its message; kafka-python returns no code.

    Examples
    --------
    >>> problem_in("[Error 16] NotCoordinatorError")
    <GroupProblem.NOT_COORDINATOR: 'not the coordinator'>
    """
    matches = (problem for text, problem in _PROBLEMS.items() if text in error)
    return next(matches, GroupProblem.NOT_DESCRIBED)


def group_error(described: GroupDescription) -> GroupError:
    """Return the exception for a description with an error."""
    exception = _EXCEPTIONS.get(described.problem, GroupUnsettledError)
    return exception(f"Group {described.group}: {described.error}")


def undescribed(group: str, error: Exception) -> GroupDescription:
    """Return a description that contains only the error with which the request failed."""
    problem = problem_in(str(error))
    return GroupDescription(
        group,
        state="",
        protocol="",
        error=f"The group cannot be described: {error}",
        problem=problem if problem in MOVING else None,
    )


def read_description(group: str, raw: Mapping[str, Any]) -> GroupDescription:
    """Convert the result of kafka-python's `describe_groups` for one group.

    If the group has a problem, `error` of the result describes it.
    """
    state = raw["group_state"]
    members: tuple[LiveMember, ...] = ()
    problem, error = _refusal(state, raw["error"], raw["protocol_type"])
    if error is None:
        try:
            members = _named(
                _read_member(member)
                for member in raw["members"]
                if member["client_id"] != TRIGGER  # a rebalance trigger, not a consumer
            )
        except GroupError as unreadable:
            error = str(unreadable).replace(NUL, r"\0")
    return GroupDescription(group, state, raw["protocol_data"], members, error, problem)


def read_broker_group(described: BrokerGroup) -> GroupDescription:
    """Convert the description of a group of the consumer protocol; leave out rebalance triggers.

    If the group has a problem, `error` of the result describes it.
    """
    members: tuple[LiveMember, ...] = ()
    state = described.state if described.consumers or described.state == DEAD else EMPTY
    problem, error = _refusal(state, described.error)
    if problem is GroupProblem.REBALANCING and (behind := described.behind):
        names = member_names(described.consumers)
        error = f"{error}; {holds_up([names[consumer.member_id] for consumer in behind])}"
    if error is None:
        try:
            members = _named(described.consumers)
        except GroupError as unreadable:
            error = str(unreadable).replace(NUL, r"\0")
    read = {topic for member in members for topic in member.topics}
    return GroupDescription(
        group=described.group,
        state=state,
        protocol=described.assignor,
        members=members,
        error=error,
        problem=problem,
        group_type=CONSUMER,
        topic_ids={topic: text for topic, text in described.topic_ids.items() if topic in read},
    )


def holds_up(names: Sequence[str]) -> str:
    """Return a message that names the members for which a group waits, with a remedy.

    Examples
    --------
    >>> holds_up(["a"])
    'it waits for a to give up partitions: restart members that still own them after two heartbeats'
    """
    who = listed(names, at_most=3)
    return (
        f"it waits for {who} to give up partitions: restart members that still own them after "
        "two heartbeats"
    )


def _refusal(
    state: str, coordinator_error: str | None, protocol_type: str = CONSUMER_PROTOCOL_TYPE
) -> _Refusal:
    """Return why a group cannot be planned, if the reason does not depend on its members."""
    if coordinator_error:
        problem = problem_in(coordinator_error)
        told = {GroupProblem.OTHER_TYPE: coordinator_error, GroupProblem.ABSENT: _ABSENT}
        return problem, told.get(problem, _NOT_DESCRIBED + coordinator_error)
    if state == DEAD:
        return GroupProblem.ABSENT, _ABSENT
    if protocol_type not in (CONSUMER_PROTOCOL_TYPE, ""):
        return None, f"The group is not a consumer group: its protocol type is {protocol_type}"
    if state in REBALANCING:
        return GroupProblem.REBALANCING, _UNSETTLED.format(state)
    return None, None


def _read_member(raw: Mapping[str, Any]) -> LiveMember:
    subscription = _decoded(raw, "member_metadata", "subscription")
    generation = subscription.get("generation_id", -1)
    return LiveMember(
        member_id=raw["member_id"],
        client_id=raw["client_id"],
        instance_id=raw.get("group_instance_id"),
        name="",
        topics=tuple(sorted(set(subscription.get("topics", ())))),
        partitions=_owned(raw),
        generation=generation if generation >= 0 else None,
        rack=subscription.get("rack_id") or None,
    )


def _named(members: Iterable[LiveMember]) -> tuple[LiveMember, ...]:
    """Return the members with their names in plans, ascending by name.

    Raises
    ------
    GroupError
        Two members have the same name, or Postgres cannot store a name. Or a member names a topic
        that cannot exist; a request about such a topic would fail for all groups.
    """
    members = tuple(members)
    for described in members:
        for topic in (*described.topics, *described.partitions):
            if not _TOPIC_NAME.fullmatch(topic):
                raise GroupError(
                    f"Member {described.member_id} (client {described.client_id}) reads a topic "
                    f"called {topic[:_LONGEST_TOPIC]!r}, a name that Kafka does not allow: correct "
                    "its subscription"
                )
    names = member_names(members)
    shared = [name for name, times in Counter(names.values()).items() if times > 1]
    if shared:
        raise GroupError(
            f"Several members are called {shared[0]}: give each its own group.instance.id"
        )
    if unusable := [name for name in names.values() if NUL in name]:
        raise GroupError(
            f"The name of member {unusable[0]} has a NUL character, which Postgres does not "
            "accept: give it another client.id or group.instance.id"
        )
    named = (replace(described, name=names[described.member_id]) for described in members)
    return tuple(sorted(named, key=lambda member: member.name))


def _owned(raw: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    assignment = _decoded(raw, "member_assignment", "assignment")
    owned = {
        entry["topic"]: tuple(sorted(entry["partitions"]))
        for entry in sorted(
            assignment.get("assigned_partitions", ()), key=lambda entry: str(entry["topic"])
        )
        if entry["partitions"]
    }
    for topic, numbers in owned.items():
        twice = len(set(numbers)) < len(numbers)
        if twice or numbers[0] < 0:
            what = "a partition twice" if twice else f"partition {numbers[0]}"
            raise GroupError(
                f"The assignment of member {raw['member_id']} (client {raw['client_id']}) names "
                f"{what} of topic {topic}: the group's leader computed it wrongly"
            )
    return owned


def _decoded(raw: Mapping[str, Any], key: str, what: str) -> Mapping[str, Any]:
    """Return a decoded part of a member's description; {} if the part is empty.

    Raises GroupError if kafka-python could not decode the part.
    """
    value = raw[key]
    if not value:
        return {}
    if not isinstance(value, dict):
        raise GroupError(
            f"The {what} of member {raw['member_id']} (client {raw['client_id']}) cannot be "
            "decoded: its assignor does not write the format of Kafka's own assignors"
        )
    return value
