"""A simulated group with topics and coordinator, and checks of invariants after each step."""

import heapq
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache

from fairlead.followers.confluent.generation import RangeShare
from fairlead.followers.confluent.member import FollowingMember
from fairlead.followers.core.clock import Clock
from fairlead.wire.document import PlanDocument
from fairlead.wire.fit import fit
from fairlead.wire.partitions import Pair, Partitions, pairs
from fairlead.wire.record import Headers, Origin, plan_headers
from tests.fairlead.followers.helpers import make_plan
from tests.fairlead.followers.simulator.coordinator import Coordinator
from tests.fairlead.followers.simulator.logs import GROUP, PARTITIONS, Topic
from tests.fairlead.followers.simulator.member import TOPIC, SimulatedMember

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
BUSY_S, JOINING_S = 0.03, 0.12
#: Maximum seconds between two polls of an application; drawn for each member.
IDLE_S = (0.25, 0.5, 1.0)
EVERYTHING = frozenset((TOPIC, number) for number in range(PARTITIONS))


@cache
def plan(version: int) -> tuple[PlanDocument, bytes]:
    """Return plan `version`, with random shares for some of the members a to d, and its bytes."""
    rng = random.Random(version)
    names = rng.sample("abcd", rng.randint(1, 4))
    shares: dict[str, list[int]] = {name: [] for name in names}
    for number in range(PARTITIONS):
        shares[rng.choice(names)].append(number)
    document = make_plan(
        {name: {TOPIC: share} for name, share in shares.items()},
        partition_counts={TOPIC: PARTITIONS},
        group=GROUP,
        version=version,
    )
    return document, document.to_bytes()


class ViolationError(AssertionError):
    """A violated invariant."""


class World:
    """One group, its topics and its members.

    Parameters
    ----------
    seed
        Seed of all random decisions.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.time = 0.0
        self.clock = Clock(lambda: self.time, lambda: BEGINNING + timedelta(seconds=self.time))
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.plans = Topic(lambda: self.time, self.after, self.rng)
        self.members: dict[str, SimulatedMember] = {}
        self.version = 0
        self.agreement_topic = Topic(lambda: self.time, self.after, self.rng)
        self.coordinator = Coordinator(lambda: self.time, self.rng, PARTITIONS)
        #: Lease end that is sent with each plan; None: plans never expire.
        self.lease_until: datetime | None = None
        self.safe = True
        self._shares: list[frozenset[Pair]] = []
        self._owned = frozenset[Pair]()
        self.orphaned_since: float | None = None
        self.longest_orphaned_s = 0.0

    def after(self, delay_s: float, do: Callable[[], None]) -> None:
        """Schedule a call."""
        self._count += 1
        heapq.heappush(self._events, (self.time + delay_s, self._count, do))

    def run(self, until: float) -> None:
        """Run all pending calls up to a time, in seconds."""
        while self._events and self._events[0][0] <= until:
            self.time, _, do = heapq.heappop(self._events)
            do()
        self.time = until

    def stop(self, name: str) -> None:
        """Let a member leave the group and close."""
        if (member := self.members.get(name)) and not member.frozen:
            del self.members[name]
            member.close()

    def kill(self, name: str) -> None:
        """End a member abruptly."""
        if member := self.members.pop(name, None):
            member.closed = True

    def happen_to_plans(self, what: str) -> None:
        """Change the plan topic: "away" makes it unreachable, and "back" makes it reachable."""
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

    def start(self, name: str, *, plain: bool = False) -> None:
        """Start a member, unless a member of this name is running."""
        if name in self.members:
            return
        rng = random.Random(self.rng.getrandbits(32))
        topics = None if plain else (self.plans, self.agreement_topic)
        member = SimulatedMember(name, self.coordinator, topics, self.clock, rng)
        member.busy_s = self.rng.choice([BUSY_S, BUSY_S, 10 * BUSY_S])
        member.idle_s = self.rng.choice(IDLE_S)
        self.members[name] = member
        self.after(self.rng.uniform(0, 0.25), lambda: self._turn(member))

    def publish(self) -> None:
        """Publish the next version of the plan."""
        self.version += 1
        self.tell()

    def tell(self) -> None:
        """Send the newest plan, if there is one and the topic exists."""
        topic, version = self.plans, self.version
        if topic.partitions is None or version == 0:
            return
        _, value = plan(version)
        headers: Headers = plan_headers(
            value,
            group=GROUP,
            version=version,
            origin=Origin("plans", "cluster", topic.identity),
            epoch=1,
            lease_until=self.lease_until,
        )
        home = topic.partitions[topic.home()]
        home.records.append((home.epoch, (value, tuple(headers))))

    def _turn(self, member: SimulatedMember) -> None:
        if member.closed:
            return
        if not member.frozen and member.step():
            self._check(member)
        if member.undecided:
            pause_s = member.busy_s
        else:
            pause_s = JOINING_S if member.joining else member.idle_s
        self.after(self.rng.uniform(0.3 * pause_s, pause_s), lambda: self._turn(member))

    def _check(self, member: SimulatedMember) -> None:
        """Check the invariants after a member's step."""
        shares = [
            other.client.share
            for other in self.members.values()
            if not other.frozen and other.client.can_commit
        ]
        if shares != self._shares:  # most events change nothing
            self._shares, self._owned = shares, frozenset[Pair]().union(*shares)
            if self.safe and len(self._owned) < sum(map(len, shares)):
                raise ViolationError(f"{self.time:.2f}: two own something: {self.state()}")
        owned = self._owned
        if member.plans is not None and not member.interrupted:
            self._check_status(member, member.plans)
        acting = any(other.subscribed and not other.frozen for other in self.members.values())
        if owned == EVERYTHING or not acting:
            self.orphaned_since = None
        elif self.orphaned_since is None:
            self.orphaned_since = self.time
        else:
            orphaned_s = self.time - self.orphaned_since
            self.longest_orphaned_s = max(self.longest_orphaned_s, orphaned_s)

    def _check_status(self, member: SimulatedMember, plans: FollowingMember) -> None:
        """Check that a member's status agrees with its generation and its assignment."""
        status, generation = plans.status(member.client.share), plans.generation
        round_ = generation.round if generation else None
        assignment = round_.assignment if round_ else None
        match status.rule:
            case "undecided":
                return
            case "nothing":
                says: Partitions = {}
            case "plan" if round_ and assignment and assignment.plan_version == status.plan_version:
                says = assignment.shares[round_.me.member]
            case "range" if generation and round_ and status.plan_version is None:
                # A member that keeps its share from `range` (KEPT) ignores assignment records.
                dealt = (
                    assignment.shares
                    if assignment and generation.share is not RangeShare.KEPT
                    else {}
                )
                says = dealt.get(round_.me.member, round_.me.given)
            case _:
                raise ViolationError(f"{self.time:.2f}: {member.name} is mistaken: {status}")
        if status.owned != {topic: numbers for topic, numbers in says.items() if numbers}:
            raise ViolationError(
                f"{self.time:.2f}: {member.name} does not own {says}: {status}\n{self.state()}"
            )

    def healed(self) -> str | None:
        """Return what is still wrong after the faults; None if the group has fully recovered."""
        members = list(self.members.values())
        shares = [
            (t, n) for member in members for t, n in member.client.share if member.client.can_commit
        ]
        if sorted(shares) != sorted(EVERYTHING):
            return f"not everything is owned once: {self.state()}"
        if any(member.plans is None for member in members):
            return None
        followed = {member.plans.status(()).plan_version for member in members if member.plans}
        if followed != {self.version or None}:
            return f"version {self.version} is not followed by all: {self.state()}"
        if not self.version:
            return None
        names = {member.name: [TOPIC] for member in members}
        fitted = fit(plan(self.version)[0], names, {TOPIC: PARTITIONS})
        for member in members:
            planned = set(pairs(fitted[member.name]))
            if planned != member.client.share:
                return f"{member.name} does not own what the plan says: {self.state()}"
        return None

    def state(self) -> str:
        """Describe the generation and every member, for messages."""
        lines = [f"generation {self.coordinator.generation}"]
        for member in self.members.values():
            share = sorted(number for _, number in member.client.share)
            says = ""
            if member.plans is not None:
                status = member.plans.status(member.client.share)
                says = f"plan {status.plan_version}, {status.fallback_reason}"
            lines.append(
                f"{member.name}: {member.client.identity()} {member.client.phase} owns {share}; "
                f"{'frozen' if member.frozen else ''} {says}"
            )
        return "\n  ".join(lines)
