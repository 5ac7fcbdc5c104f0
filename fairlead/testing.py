"""Helpers to test how an application follows plans, without a broker.

Belongs here: plans from dicts, a plan topic in memory, and a group whose members follow its plans.
Belongs elsewhere: brokers, client libraries and their rebalance listeners.

The members run the code of real clients: they read and check records, adapt plans to the present
members, use `range` without a valid plan, and request rebalances. Brokers and clients are not
modelled: there are no sessions, heartbeats, generations, or overlapping rebalances. As with
kafka-python and aiokafka, the group's leader computes the assignment. Members of confluent-kafka
agree on the same assignment through a topic, which is not modelled either.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from fairlead.errors import GroupError
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.follower import Follower, FollowOptions
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.followers.core.status import FollowerStatus
from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.wire.fit import Shares
from fairlead.wire.members import GroupMember, member_names
from fairlead.wire.partitions import pairs, partition_counts
from fairlead.wire.record import Headers, Origin, plan_headers, withdrawn_value
from fairlead.wire.signing import Signer

__all__ = ["MemoryGroup", "MemoryPlanTopic", "plan_of"]

_BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)


def plan_of(
    group: str,
    shares: Mapping[str, Mapping[str, Collection[int]]],
    *,
    version: int = 1,
    partition_counts: Mapping[str, int] | None = None,
    weights: Mapping[str, Sequence[float]] | None = None,
) -> PlanDocument:
    """Return a plan with the given share of each member.

    Parameters
    ----------
    group, version
        The plan's group and version.
    shares
        Member name to topic to partition numbers; every member subscribes to every topic.
    partition_counts
        Topic to number of partitions; default: as many as the shares contain.
    weights
        Maps a topic to the weights of its partitions. If a member is absent, and no new member
        takes over its share, each of its partitions goes to the member with the fewest partitions;
        among equals, to the one with the least weight.

    Raises
    ------
    InvalidPlanError
        The plan is invalid: a partition has two owners, or is beyond the topic's count.

    Examples
    --------
    >>> plan = plan_of("orders", {"a": {"t": [0]}, "b": {"t": [1, 2]}})
    >>> plan.version, plan.partition_counts
    (1, {'t': 3})
    """
    counts = dict(partition_counts or {})
    if partition_counts is None:
        for share in shares.values():
            for topic, numbers in share.items():
                counts[topic] = max([counts.get(topic, 0), *(number + 1 for number in numbers)])
    plan = PlanDocument(
        group=group,
        version=version,
        plan_id=f"{group}-{version}",
        assignor="testing",
        created_at=_BEGINNING,
        snapshot_at=_BEGINNING,
        partition_counts=counts,
        members={
            name: MemberShare(
                tuple(sorted(counts)),
                {topic: np.array(sorted(owned), np.int32) for topic, owned in share.items()},
            )
            for name, share in shares.items()
        },
        weights={topic: np.array(values, float) for topic, values in (weights or {}).items()},
    )
    return PlanDocument.from_bytes(plan.to_bytes())


class MemoryPlanTopic:
    """A plan topic with one partition, in memory.

    Pass the method `open` to a `Follower`, as the argument `open_source`. Each call of `open`
    returns a new connection, which reads the topic from the beginning.
    """

    def __init__(self, topic: str = "fairlead.plans") -> None:
        self.origin = Origin(topic, cluster="in memory", log="in memory")
        self.records: list[PlanRecord] = []

    def publish(
        self,
        plan: PlanDocument,
        *,
        epoch: int = 1,
        lease_until: datetime | None = None,
        signer: Signer | None = None,
    ) -> None:
        """Publish a plan as the planner does; without `lease_until`, its lease has no end."""
        value, lease = plan.to_bytes(), lease_until
        self._send(value, plan.group, plan.version, epoch=epoch, lease_until=lease, signer=signer)

    def withdraw(
        self, group: str, version: int, *, epoch: int = 1, signer: Signer | None = None
    ) -> None:
        """Withdraw a version of a group's plan, as the planner does."""
        value, kind = withdrawn_value(group, version), "withdrawn"
        self._send(value, group, version, epoch=epoch, lease_until=None, kind=kind, signer=signer)

    def _send(self, value: bytes, group: str, version: int, **headers: Any) -> None:
        names: dict[str, Any] = {"group": group, "version": version, "origin": self.origin}
        self.put(group, value, plan_headers(value, **names, **headers))

    def put(self, group: str, value: bytes | None, headers: Headers | None = None) -> None:
        """Append any record, valid or not; the value None makes a tombstone."""
        offset = len(self.records)
        self.records.append(PlanRecord(offset, group.encode(), value, tuple(headers or ())))

    def open(self) -> "_Connection":
        """Return a connection that reads this topic."""
        return _Connection(self)


@dataclass
class _Connection:
    """A `PlanSource` that never waits."""

    topic: MemoryPlanTopic
    position: int = 0

    @property
    def origin(self) -> Origin:
        """The topic's origin."""
        return self.topic.origin

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Return the records that were appended since the last call."""
        del timeout_s
        new = self.topic.records[self.position :]
        self.position += len(new)
        return new

    def moved(self) -> bool:
        """Return False: the topic always has one partition."""
        return False

    def at_end(self) -> bool:
        """Whether all records were read."""
        return self.position == len(self.topic.records)

    def close(self) -> None:
        """Do nothing: there is no connection."""


class _DrivenReader(PlanReader):
    """A reader of plans without a thread; it reads when `MemoryGroup.read` is called."""

    def serve(self) -> bool:
        """Accept a plan follower, without starting a thread."""
        return True


@dataclass
class _Follows:
    """One member of a `MemoryGroup`."""

    topics: tuple[str, ...]
    follower: Follower
    reader: PlanReader
    asks: bool = False
    owned: dict[str, list[int]] = field(default_factory=dict)

    def ask(self) -> None:
        """Ask for a rebalance."""
        self.asks = True


class MemoryGroup:
    """A consumer group whose members follow the plans of a topic in memory.

    Nothing happens automatically. Members read plans and ask for rebalances when you call `read`.
    The group rebalances when you call `rebalance`. Time passes when you call `sleep`.

    Parameters
    ----------
    group
        The group id.
    topics
        Maps each topic to its number of partitions. Change this dict to let topics grow.
    plans
        The topic to which the group's plans are published.
    options
        Options of the members; default: those of `FollowOptions`, but without jitter.

    Examples
    --------
    >>> plans = MemoryPlanTopic()
    >>> group = MemoryGroup("orders", {"t": 3}, plans)
    >>> group.join("a")
    >>> group.join("b")
    >>> group.rebalance(), group.status("a").fallback_reason
    ({'a': {'t': [0, 1]}, 'b': {'t': [2]}}, 'no plan has been published')
    >>> plans.publish(plan_of("orders", {"a": {"t": [0]}, "b": {"t": [1, 2]}}))
    >>> group.read()  # the members that ask for a rebalance, to adopt it
    ['a', 'b']
    >>> group.rebalance(), group.status("a").plan_version
    ({'a': {'t': [0]}, 'b': {'t': [1, 2]}}, 1)
    """

    def __init__(
        self,
        group: str,
        topics: Mapping[str, int],
        plans: MemoryPlanTopic,
        options: FollowOptions | None = None,
    ) -> None:
        self.group, self.topics, self.plans = group, topics, plans
        self.now = _BEGINNING
        self.generation = 0
        self._options = options or FollowOptions(
            plan_topic=plans.origin.topic, read_timeout_s=0.0, rejoin_jitter_s=0.0
        )
        self._clock = Clock(self._seconds, lambda: self.now)
        self._members: dict[str, _Follows] = {}

    def join(self, name: str, topics: Collection[str] | None = None) -> None:
        """Add a member; it reads the plans, and owns nothing before the next `rebalance`.

        Parameters
        ----------
        name
            The member's `client.id`, which is its name in plans.
        topics
            The member's subscription; default: every topic.

        Raises
        ------
        GroupError
            A member has this name already.
        """
        if name in self._members:
            raise GroupError(f"group {self.group} has a member {name} already")
        readers: list[PlanReader] = []

        def new_reader(group: str, **parts: Any) -> PlanReader:
            readers.append(_DrivenReader(group, **parts))
            return readers[-1]

        follower = Follower(
            self.group, self._options, self.plans.open, clock=self._clock, new_reader=new_reader
        )
        subscription = tuple(sorted(self.topics if topics is None else topics))
        member = self._members[name] = _Follows(subscription, follower, readers[0])
        follower.rejoin_by(member.ask)
        self.read()

    def leave(self, name: str) -> None:
        """Remove a member; the others keep their partitions until the next `rebalance`."""
        self._member(name).follower.close()
        del self._members[name]

    def sleep(self, seconds: float) -> None:
        """Let time pass: leases end, and rebalance requests that jitter has delayed become due."""
        self.now += timedelta(seconds=seconds)

    def read(self) -> list[str]:
        """Let every member read the plan topic; return the names of those that want a rebalance."""
        for member in self._members.values():
            member.reader.advance(0.0)  # the first call only connects
            member.reader.advance(0.0)
        return sorted(name for name, member in self._members.items() if member.asks)

    def rebalance(self) -> Shares:
        """Let every member join, and assign the shares that the first member computes as leader.

        Returns
        -------
        dict
            Member name to topic to partition numbers, for every member.
        """
        if not self._members:
            return {}
        joined = [
            GroupMember.joining(name, member.topics, member.follower.subscription(name))
            for name, member in self._members.items()
        ]
        names = member_names(joined)
        counts = partition_counts(
            [member.topics for member in self._members.values()], self._partitions_of
        )
        leader = next(iter(self._members.values())).follower
        shares, user_data = leader.assign(joined, counts)
        self.generation += 1
        for member_id, share in shares.items():
            member = self._members[member_id]
            member.owned, member.asks = share, False
            member.follower.assigned(user_data, self.generation)
        return {names[member_id]: share for member_id, share in shares.items()}

    def status(self, name: str) -> FollowerStatus:
        """Return a member's status, as `PlanConsumer.status` does."""
        member = self._member(name)
        return member.follower.status(pairs(member.owned))

    def _seconds(self) -> float:
        return (self.now - _BEGINNING).total_seconds()

    def _member(self, name: str) -> _Follows:
        if name not in self._members:
            raise GroupError(f"group {self.group} has no member {name}")
        return self._members[name]

    def _partitions_of(self, topic: str) -> set[int] | None:
        return set(range(self.topics[topic])) if topic in self.topics else None
