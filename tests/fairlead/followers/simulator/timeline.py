"""What every simulated group has: time that passes in events, a plan topic, and members."""

import heapq
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Generic, Protocol, TypeVar

from fairlead.followers.core.clock import Clock
from tests.fairlead.followers.simulator.logs import Topic

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class ViolationError(AssertionError):
    """Something that must not be."""


class Ended(Protocol):
    """A member as far as it may be ended."""

    frozen: bool
    closed: bool

    def close(self) -> None:
        """Leave in order."""


Member = TypeVar("Member", bound=Ended)


class Timeline(Generic[Member]):
    """Events in their order, a plan topic, and members.

    Parameters
    ----------
    seed
        Draws every delay.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.time = 0.0
        self.clock = Clock(lambda: self.time, lambda: BEGINNING + timedelta(seconds=self.time))
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.plans = Topic(lambda: self.time, self.after, self.rng)
        self.members: dict[str, Member] = {}
        self.version = 0

    def after(self, delay_s: float, do: Callable[[], None]) -> None:
        """Do something later."""
        self._count += 1
        heapq.heappush(self._events, (self.time + delay_s, self._count, do))

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._events and self._events[0][0] <= until:
            self.time, _, do = heapq.heappop(self._events)
            do()
        self.time = until

    def stop(self, name: str) -> None:
        """Let a member leave in order."""
        if (member := self.members.get(name)) and not member.frozen:
            del self.members[name]
            member.close()

    def kill(self, name: str) -> None:
        """End a member without a word."""
        if member := self.members.pop(name, None):
            member.closed = True

    def tell(self) -> None:
        """Write what the planner knows, if there is a topic."""
        raise NotImplementedError

    def happen_to_plans(self, what: str) -> None:
        """Let something happen to the plan topic: "away", "back", "delete", "create", "grow"."""
        match what:
            case "away" | "back":
                self.plans.reachable = what == "back"
            case "delete":
                self.plans.delete()
            case "create" | "grow":
                self.plans.create() if what == "create" else self.plans.grow()
                self.tell()
            case _:
                raise ValueError(what)
