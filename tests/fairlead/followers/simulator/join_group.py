"""A group's coordinator, classic protocol, in which the members' leader assigns, as a model.

After Kafka's `GroupCoordinator`: what a member joins with is kept and compared; generations, the
leader's election, deadlines for joining and for syncing, static members, what becomes of a
rebalance when the coordinator moves to another broker.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

SESSION_S = 4.0
REBALANCE_S = 6.0

Failure = Literal["unknown", "illegal generation", "rebalancing", "inconsistent", "moved"]


@dataclass(frozen=True)
class Subscription:
    """What a member joins with for one protocol."""

    user_data: bytes = b""
    owned: frozenset[int] = frozenset()


Protocols = Mapping[str, Subscription]  # the preferred one first
Shares = Mapping[str, tuple[frozenset[int], bytes]]


@dataclass(frozen=True)
class Joined:
    """The answer to JoinGroup; `members` is the leader's alone."""

    generation: int
    protocol: str
    members: Mapping[str, tuple[str | None, Subscription]] | None = None


@dataclass(frozen=True)
class Synced:
    """The answer to SyncGroup."""

    share: frozenset[int]
    user_data: bytes


@dataclass
class Request:
    """What a member has asked, and the answer once there is one."""

    member: str
    answer: Joined | Synced | Failure | None = None


@dataclass
class Place:
    """A member as the coordinator has it; a request that it waits with."""

    instance: str | None
    protocols: Protocols
    heard_at: float
    join: Request | None = None
    sync: Request | None = None
    given: tuple[frozenset[int], bytes] = (frozenset(), b"")


@dataclass(frozen=True, eq=False)
class Dealt:
    """A generation that its leader has assigned: who was in it, and what they had joined with."""

    generation: int
    protocol: str
    members: Mapping[str, tuple[str | None, Subscription]]


@dataclass
class GroupCoordinator:
    """Keeps one group.

    Parameters
    ----------
    now
        The clock.
    rng
        Draws member ids.
    """

    now: Callable[[], float]
    rng: random.Random
    state: Literal["empty", "preparing", "completing", "stable"] = "empty"
    generation: int = 0
    leader: str | None = None
    protocol: str = ""
    members: dict[str, Place] = field(default_factory=dict)
    dealt: Dealt | None = None
    reachable: bool = True
    _until: float = 0.0
    _kept: tuple[int, str | None, Dealt | None, dict[str, Place]] = (0, None, None, {})

    def join(self, member: str | None, instance: str | None, protocols: Protocols) -> Request:
        """Take a member in, or in again."""
        self.tick()
        known = self._of_instance(instance)
        request = Request(member or f"m{self.rng.getrandbits(32):08x}")
        others = [place for name, place in self.members.items() if name not in {member, known}]
        if others and not self._common([*others, Place(None, protocols, 0.0)]):
            request.answer = "inconsistent"
        elif member is None and known is not None:
            self._replace(known, request, protocols)
        elif member is None:
            self.members[request.member] = Place(instance, protocols, self.now())
            self.leader = self.leader or request.member
            self._rejoin(request)
        elif member not in self.members:
            request.answer = "unknown"
        else:
            self._join_again(request, protocols)
        self.tick()
        return request

    def sync(self, member: str, generation: int, shares: Shares | None) -> Request:
        """Take the leader's assignment, or tell a member's share of it once it is there."""
        self.tick()
        request = Request(member)
        place = self.members.get(member)
        if place is None:
            request.answer = "unknown"
        elif generation != self.generation:
            request.answer = "illegal generation"
        elif self.state == "preparing":
            request.answer = "rebalancing"
        else:
            place.heard_at = self.now()
            place.sync = request
            if self.state == "completing" and member == self.leader and shares is not None:
                self._assign(shares)
            if self.state == "stable":
                self._tell_shares()
        return request

    def heartbeat(self, member: str, generation: int) -> Failure | None:
        """Hear of a member."""
        self.tick()
        place = self.members.get(member)
        if place is None:
            return "unknown"
        if generation != self.generation:
            return "illegal generation"
        place.heard_at = self.now()
        return "rebalancing" if self.state == "preparing" else None

    def leave(self, member: str) -> None:
        """Take a member out."""
        if member in self.members:
            self._remove(member)
            self.tick()

    def valid(self, member: str | None, generation: int) -> bool:
        """Whether a commit would be taken, or soon will be."""
        return member in self.members and generation == self.generation

    def delete(self) -> None:
        """Forget the group, if nobody is in it: its next life counts from 1."""
        if not self.members:
            self.state, self.generation, self.leader, self.dealt = "empty", 0, None, None
            self._keep()

    def move(self) -> None:
        """Go on at another broker: from the last assignment, and what was under way is lost."""
        for place in self.members.values():
            for request in (place.join, place.sync):
                if request is not None:
                    request.answer = "moved"
        self.generation, self.leader, self.dealt, kept = self._kept
        self.members = {name: replace(place, heard_at=self.now()) for name, place in kept.items()}
        self.protocol = self.dealt.protocol if self.dealt else ""
        self.state = "stable" if self.members else "empty"

    def tick(self) -> None:
        """Drop who is silent, and end what is complete or late."""
        for name, place in list(self.members.items()):
            waits = place.join is not None or place.sync is not None
            if not waits and self.now() > place.heard_at + SESSION_S:
                self._remove(name)
        late = self.now() >= self._until
        if self.state == "completing" and late:
            for name, place in list(self.members.items()):
                if place.sync is None:
                    self._remove(name)
        if self.state == "preparing" and (
            late or all(place.join is not None for place in self.members.values())
        ):
            self._complete()

    def _of_instance(self, instance: str | None) -> str | None:
        if instance is None:
            return None
        return next((n for n, member in self.members.items() if member.instance == instance), None)

    def _join_again(self, request: Request, protocols: Protocols) -> None:
        place = self.members[request.member]
        changed = list(place.protocols.items()) != list(protocols.items())
        leads = request.member == self.leader
        place.protocols, place.heard_at = protocols, self.now()
        if self.state == "preparing" or changed or (self.state == "stable" and leads):
            self._rejoin(request)
        else:
            request.answer = self._joined(leads=leads and self.state == "completing")

    def _replace(self, known: str, request: Request, protocols: Protocols) -> None:
        """Put a static member that has started again in its own place."""
        old = self.members[known]
        for lost in (old.join, old.sync):
            if lost is not None:
                lost.answer = "unknown"
        place = replace(old, protocols=protocols, heard_at=self.now(), join=None, sync=None)
        self.members = {
            request.member if name == known else name: place if name == known else member
            for name, member in self.members.items()
        }
        if self.leader == known:
            self.leader = request.member
        if self.state == "stable" and self._select() == self.protocol:
            # It is not told that it leads: its assignment would go to nobody.
            request.answer = self._joined(leads=False)
            self._keep()
        else:
            self._rejoin(request)

    def _rejoin(self, request: Request) -> None:
        """Let a member wait for the next generation."""
        if self.state != "preparing":
            for place in self.members.values():
                if place.sync is not None:
                    place.sync.answer, place.sync = "rebalancing", None
            self.state, self._until = "preparing", self.now() + REBALANCE_S
        self.members[request.member].join = request

    def _remove(self, member: str) -> None:
        del self.members[member]
        if self.leader == member:
            self.leader = next(iter(self.members), None)
        if self.state != "preparing":
            for place in self.members.values():
                if place.sync is not None:
                    place.sync.answer, place.sync = "rebalancing", None
            self.state, self._until = "preparing", self.now() + REBALANCE_S

    def _complete(self) -> None:
        self.members = {
            name: place
            for name, place in self.members.items()
            if place.join is not None or place.instance is not None
        }
        joined = [name for name, place in self.members.items() if place.join is not None]
        self._until = self.now() + REBALANCE_S
        if self.members and not joined:
            return  # static members may come yet
        if self.leader not in joined:
            self.leader = joined[0] if joined else None
        self.generation += 1
        self.state = "completing" if joined else "empty"
        if not joined:
            self.dealt = None
            self._keep()
            return
        self.protocol = self._select()
        for name in joined:
            place = self.members[name]
            assert place.join is not None
            place.join.answer = self._joined(leads=name == self.leader)
            place.join, place.heard_at = None, self.now()

    def _joined(self, *, leads: bool) -> Joined:
        return Joined(self.generation, self.protocol, self._subscriptions() if leads else None)

    def _subscriptions(self) -> Mapping[str, tuple[str | None, Subscription]]:
        return {
            name: (place.instance, place.protocols[self.protocol])
            for name, place in self.members.items()
        }

    def _assign(self, shares: Shares) -> None:
        for name, place in self.members.items():
            place.given = shares.get(name, (frozenset(), b""))
        self.state = "stable"
        self.dealt = Dealt(self.generation, self.protocol, self._subscriptions())
        self._keep()

    def _tell_shares(self) -> None:
        for place in self.members.values():
            if place.sync is not None:
                place.sync.answer, place.sync = Synced(*place.given), None
                place.heard_at = self.now()

    def _keep(self) -> None:
        """Write what another broker would go on from."""
        members = {n: replace(member, join=None, sync=None) for n, member in self.members.items()}
        self._kept = (self.generation, self.leader, self.dealt, members)

    def _common(self, places: list[Place]) -> list[str]:
        first, *others = places
        return [
            name for name in first.protocols if all(name in other.protocols for other in others)
        ]

    def _select(self) -> str:
        """Let each member vote for the first of its protocols that all have."""
        common = self._common(list(self.members.values()))
        votes = Counter(
            next(name for name in place.protocols if name in common)
            for place in self.members.values()
        )
        return max(sorted(votes), key=lambda name: votes[name])
