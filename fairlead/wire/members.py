"""The members of a group as the group leader sees them, and the user data that they exchange.

Belongs here: a member's name in plans, and the user data of subscriptions and assignments. Belongs
elsewhere: which member gets which partition (`fit`).
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol, Self

from fairlead.wire.record import NOTHING, Identity

_FORMAT: Final = 1
_IDENTITY: Final = (int, int, bool, str)


@dataclass(frozen=True)
class GroupMember:
    """One member of a consumer group at a rebalance.

    Parameters
    ----------
    member_id
        The id that the group coordinator gave the member.
    topics
        The member's subscription.
    instance_id
        `group.instance.id`; None: the member is not static.
    client_id
        `client.id`; None: the member is not a plan follower.
    seen
        The newest record of the plan topic that the member has read; NOTHING: no record.
    lapsed
        Whether `seen` is a plan whose lease has expired, by the member's clock.
    owned
        Maps each topic to the partition numbers that the member keeps during the rebalance
        (KIP-429). Empty for an eager member, because it has given up all partitions.
    """

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    client_id: str | None = None
    seen: Identity = NOTHING
    lapsed: bool = False
    owned: Mapping[str, Collection[int]] = field(default_factory=dict)

    @classmethod
    def joining(
        cls,
        member_id: str,
        topics: Iterable[str],
        user_data: bytes | None,
        *,
        instance_id: str | None = None,
        owned: Mapping[str, Collection[int]] | None = None,
    ) -> Self:
        """Return a member with its subscription. `user_data` may come from another assignor."""
        note = decode_subscription(user_data)
        return cls(
            member_id,
            tuple(topics),
            instance_id or note.instance_id,
            note.client_id,
            note.seen,
            note.lapsed,
            owned or {},
        )


@dataclass(frozen=True)
class SubscriptionNote:
    """User data of a plan follower's subscription.

    Parameters
    ----------
    client_id, instance_id
        The plan follower's `client.id` and `group.instance.id`, which some client libraries hide
        from the group leader.
    seen, lapsed
        As in `GroupMember`.
    again
        Number of rebalances that this plan follower requested to complete a cooperative rebalance.
        The coordinator ignores an unchanged subscription, so this number makes the user data
        differ.
    """

    client_id: str | None = None
    instance_id: str | None = None
    seen: Identity = NOTHING
    lapsed: bool = False
    again: int = 0


@dataclass(frozen=True)
class AssignmentNote:
    """User data of an assignment, the same for every member.

    Parameters
    ----------
    plan_version
        Version of the plan that the assignment follows; None: it follows no plan.
    seen
        The newest record of the plan topic that any member had read when the leader decided.
    fallback_reason
        Why the assignment follows no plan; None: it follows a plan.
    lapsed
        Whether the lease of `seen` had expired, by the clocks of all members that had read it.
    decided
        The newest record that the leader itself had read; None: unknown.
    incomplete
        Whether some partitions are not assigned yet, because their present owners must give them up
        first.
    """

    plan_version: int | None = None
    seen: Identity = NOTHING
    fallback_reason: str | None = None
    lapsed: bool = False
    decided: Identity | None = None
    incomplete: bool = False

    def known(self, *, by_leader: bool) -> tuple[Identity, bool]:
        """Return the newest plan record that was read, and whether its plan had expired.

        Parameters
        ----------
        by_leader
            True: the newest record that the leader itself had read; its plan counts as expired if
            the leader did not follow it. False: the newest record that one of the members had read.

        Examples
        --------
        >>> note = AssignmentNote(seen=Identity(1, 3), decided=Identity(1, 2))
        >>> note.known(by_leader=True)  # the leader had read a plan and did not follow it
        (Identity(epoch=1, version=2, withdrawn=False, sha256=''), True)
        """
        if not by_leader or self.decided is None:
            return self.seen, self.lapsed
        had_plan = self.decided.version > 0 and not self.decided.withdrawn
        return self.decided, had_plan and self.plan_version is None

    def followed(self) -> str:
        """Describe the plan or fallback of the assignment, for log messages.

        Examples
        --------
        >>> AssignmentNote(plan_version=7).followed()
        'plan version 7'
        >>> AssignmentNote(fallback_reason="the plan was withdrawn").followed()
        'range: the plan was withdrawn'
        """
        if self.plan_version is not None:
            return f"plan version {self.plan_version}"
        return f"range: {self.fallback_reason or 'its leader gave no reason'}"


class Nameable(Protocol):
    """The ids of a member that determine its name in plans."""

    @property
    def member_id(self) -> str: ...  # noqa: D102
    @property
    def instance_id(self) -> str | None: ...  # noqa: D102
    @property
    def client_id(self) -> str | None: ...  # noqa: D102


def member_names(members: Iterable[Nameable]) -> dict[str, str]:
    """Return the name of each member in plans. The planner and plan followers use the same rule.

    Returns
    -------
    dict
        Maps each member id to a unique name: the `group.instance.id`, otherwise the `client.id` if
        no other member uses it, otherwise the member id.

    Examples
    --------
    >>> twins = [GroupMember(f"m{i}", ("t",), client_id="worker") for i in range(2)]
    >>> member_names([*twins, GroupMember("m2", ("t",), client_id="other")])
    {'m0': 'm0', 'm1': 'm1', 'm2': 'other'}
    """
    members = tuple(members)
    instances = Counter(member.instance_id for member in members)
    clients = Counter(member.client_id for member in members if not member.instance_id)
    member_ids = {member.member_id for member in members}

    def name_of(member: Nameable) -> str:
        if member.instance_id:
            name, unique = member.instance_id, instances[member.instance_id] == 1
        else:
            name = member.client_id or member.member_id
            unique = clients[member.client_id] == 1 and name not in instances
        return name if unique and name not in member_ids else member.member_id

    return {member.member_id: name_of(member) for member in members}


def encode_note(note: SubscriptionNote | AssignmentNote) -> bytes:
    """Serialise the user data of a plan follower's subscription or of an assignment."""
    return json.dumps({"fairlead": _FORMAT, **asdict(note)}, separators=(",", ":")).encode()


def decode_subscription(user_data: bytes | None) -> SubscriptionNote:
    """Parse a plan follower's subscription user data; return an empty note for other user data.

    Examples
    --------
    >>> note = SubscriptionNote("orders-1", seen=Identity(1, 7))
    >>> decode_subscription(encode_note(note)) == note
    True
    >>> decode_subscription(b"") == SubscriptionNote()
    True
    """
    note = _decode(user_data)
    client_id, instance_id, again = map(note.get, ("client_id", "instance_id", "again"))
    return SubscriptionNote(
        client_id=client_id if isinstance(client_id, str) else None,
        instance_id=instance_id if isinstance(instance_id, str) else None,
        seen=read_identity(note.get("seen")),
        lapsed=note.get("lapsed") is True,
        again=again if isinstance(again, int) else 0,
    )


def decode_assignment(user_data: bytes | None) -> AssignmentNote:
    """Parse a plan follower's assignment user data; return an empty note for other user data."""
    note = _decode(user_data)
    version, reason = note.get("plan_version"), note.get("fallback_reason")
    return AssignmentNote(
        plan_version=version if isinstance(version, int) else None,
        seen=read_identity(note.get("seen")),
        fallback_reason=reason if isinstance(reason, str) else None,
        lapsed=note.get("lapsed") is True,
        decided=read_identity(decided) if (decided := note.get("decided")) else None,
        incomplete=note.get("incomplete") is True,
    )


def read_identity(raw: Any) -> Identity:
    """Parse a record's identity from another member's data; return NOTHING if it is invalid.

    Examples
    --------
    >>> read_identity([1, 7, False, "9f2c"])
    Identity(epoch=1, version=7, withdrawn=False, sha256='9f2c')
    >>> read_identity("garbage") == NOTHING
    True
    """
    if not isinstance(raw, list) or tuple(map(type, raw)) != _IDENTITY:
        return NOTHING
    return Identity(*raw)


def _decode(user_data: bytes | None) -> dict[str, Any]:
    try:
        note = json.loads(user_data or b"null")
    except (ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) and note.get("fairlead") == _FORMAT else {}
