"""Model of a group coordinator, with eager rebalances of the classic protocol."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

SESSION_S = 4.0
REBALANCE_S = 6.0


@dataclass
class Place:
    """A member as the coordinator knows it."""

    heard_at: float
    joined: bool = True
    given: tuple[int, ...] = ()


@dataclass
class Coordinator:
    """Coordinator that counts generations, assigns by `range`, and drops silent members.

    Parameters
    ----------
    now
        Clock that returns seconds.
    rng
        Source of random member ids.
    partitions
        Number of partitions of the group's only topic.
    """

    now: Callable[[], float]
    rng: random.Random
    partitions: int
    generation: int = 0
    members: dict[str, Place] = field(default_factory=dict)
    joining_until: float | None = None
    reachable: bool = True

    def join(self, member: str | None) -> str:
        """Add a member, or let a member rejoin; return the member's id."""
        if member is None or member not in self.members:
            member = f"m{self.rng.getrandbits(32):08x}"
        self._prepare()
        self.members[member] = Place(self.now())
        self.tick()
        return member

    def leave(self, member: str) -> None:
        """Remove a member."""
        if self.members.pop(member, None) is not None:
            self._prepare()
            self.tick()

    def heartbeat(self, member: str) -> str:
        """Return the answer to a heartbeat: "ok", "rejoin" or "unknown"."""
        self.tick()
        place = self.members.get(member)
        if place is None:
            return "unknown"
        place.heard_at = self.now()
        return "ok" if self.joining_until is None or place.joined else "rejoin"

    def valid(self, member: str, generation: int) -> bool:
        """Return whether a commit would be accepted."""
        return member in self.members and generation == self.generation

    def disturb(self) -> None:
        """Require all members to rejoin, as if another member had joined and left."""
        if self.members:
            self._prepare()

    def delete(self) -> None:
        """Delete the group if no members are left; afterwards, generations begin at 1 again."""
        if not self.members:
            self.generation = 0

    def tick(self) -> None:
        """Drop silent members, and end a rebalance that is complete or has timed out."""
        for name, place in list(self.members.items()):
            waiting = self.joining_until is not None and place.joined
            if not waiting and self.now() > place.heard_at + SESSION_S:
                del self.members[name]
                self._prepare()
        if self.joining_until is None:
            return
        all_joined = all(place.joined for place in self.members.values())
        if not all_joined and self.now() < self.joining_until:
            return
        self.members = {name: place for name, place in self.members.items() if place.joined}
        self.joining_until = None
        if not self.members:
            return
        self.generation += 1
        names = sorted(self.members)
        base, more = divmod(self.partitions, len(names))
        begin = 0
        for number, name in enumerate(names):
            size = base + (number < more)
            place = self.members[name]
            place.given = tuple(range(begin, begin + size))
            place.heard_at = self.now()
            begin += size

    def _prepare(self) -> None:
        if self.joining_until is None:
            self.joining_until = self.now() + REBALANCE_S
            for place in self.members.values():
                place.joined = False
