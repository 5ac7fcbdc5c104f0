"""Who the members of a consumer group are, from what its coordinator tells.

Belongs here: reading kafka-python's group descriptions, and naming members as plans do. Does not:
asking for descriptions (`gateway`), nor offsets (`offsets`).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from fairlead.domain.groups import GroupDescription, LiveMember
from fairlead.errors import GroupError
from fairlead.wire.members import GroupMember, member_names

STABLE: Final = "Stable"
REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})
CONSUMER_PROTOCOL: Final = "consumer"
NUL: Final = "\0"
"""The one character that Kafka takes in ids and Postgres does not."""


def read_description(group: str, raw: Mapping[str, Any]) -> GroupDescription:
    """Read what kafka-python's `describe_groups` returns for one group.

    Whatever is wrong with the group ends up in `error`.
    """
    state, protocol_type = raw["group_state"], raw["protocol_type"]
    members: tuple[LiveMember, ...] = ()
    error = _refusal(raw)
    if error is None:
        try:
            members = _read_members(raw["members"])
        except GroupError as unreadable:
            error = str(unreadable).replace(NUL, r"\0")
    return GroupDescription(group, state, protocol_type, raw["protocol_data"], members, error)


def _refusal(raw: Mapping[str, Any]) -> str | None:
    """Say why a group cannot be planned whoever its members are; None: no such reason."""
    error, state, protocol_type = raw["error"] or "", raw["group_state"], raw["protocol_type"]
    kip_848 = (
        "The group uses the consumer protocol of KIP-848, under which the broker assigns: "
        "Fairlead needs consumers with group.protocol=classic"
    )
    unsettled = f"The group is rebalancing ({state}): its members' partitions are not settled"
    reasons = (
        ("not a classic group" in error, kip_848),
        ("GroupIdNotFoundError" in error, "The group does not exist (any more)"),
        (bool(error), f"The coordinator does not describe the group: {error}"),
        (state == "Dead", "The group does not exist as a classic group"),
        (
            protocol_type not in (CONSUMER_PROTOCOL, ""),
            f"The group is no consumer group: its protocol type is {protocol_type}",
        ),
        (state in REBALANCING, unsettled),
    )
    return next((reason for holds, reason in reasons if holds), None)


def _read_members(raw_members: list[dict[str, Any]]) -> tuple[LiveMember, ...]:
    topics = {raw["member_id"]: _subscription(raw) for raw in raw_members}
    names = member_names(
        GroupMember(
            raw["member_id"],
            topics[raw["member_id"]],
            instance_id=raw.get("group_instance_id"),
            client_id=raw["client_id"],
        )
        for raw in raw_members
    )
    shared = [name for name, times in Counter(names.values()).items() if times > 1]
    if shared:
        raise GroupError(
            f"Several members are called {shared[0]}: give each its own group.instance.id"
        )
    if unusable := [name for name in names.values() if NUL in name]:
        raise GroupError(
            f"The name of member {unusable[0]} has a NUL character, which Postgres does not take: "
            "give it another client.id or group.instance.id"
        )
    members = [
        LiveMember(
            member_id=raw["member_id"],
            client_id=raw["client_id"],
            host=raw["client_host"].removeprefix("/"),
            instance_id=raw.get("group_instance_id"),
            name=names[raw["member_id"]],
            topics=topics[raw["member_id"]],
            partitions=_owned(raw),
            generation=_generation(raw),
        )
        for raw in raw_members
    ]
    return tuple(sorted(members, key=lambda member: member.name))


def _subscription(raw: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(set(_decoded(raw, "member_metadata", "subscription").get("topics", ()))))


def _owned(raw: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    assignment = _decoded(raw, "member_assignment", "assignment")
    return {
        entry["topic"]: tuple(sorted(entry["partitions"]))
        for entry in sorted(
            assignment.get("assigned_partitions", ()), key=lambda entry: str(entry["topic"])
        )
        if entry["partitions"]
    }


def _generation(raw: Mapping[str, Any]) -> int | None:
    generation = _decoded(raw, "member_metadata", "subscription").get("generation_id", -1)
    return generation if generation >= 0 else None


def _decoded(raw: Mapping[str, Any], key: str, what: str) -> Mapping[str, Any]:
    """Return a part of a description that kafka-python could decode; of no bytes, nothing."""
    value = raw[key]
    if not value:
        return {}
    if not isinstance(value, dict):
        raise GroupError(
            f"The {what} of member {raw['member_id']} (client {raw['client_id']}) cannot be "
            "decoded: its assignor does not write Kafka's consumer protocol"
        )
    return value
