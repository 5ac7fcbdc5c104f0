"""A simulated group whose leader decides, its plan topic, and what must hold at any moment."""

import random
from datetime import timedelta

from fairlead.followers.core.plan_cache import PlanState
from fairlead.followers.core.plan_or_fallback import decide
from fairlead.followers.core.status import FollowerStatus
from fairlead.wire.fit import Shares, fit
from fairlead.wire.members import member_names
from fairlead.wire.record import Headers, Origin, plan_headers, withdrawn_value
from fairlead.wire.record_reading import SKEW
from tests.fairlead.followers.simulator.join_group import Dealt, GroupCoordinator
from tests.fairlead.followers.simulator.led_member import PLANS, Kind, LedMember, group_members
from tests.fairlead.followers.simulator.logs import GROUP, PARTITIONS
from tests.fairlead.followers.simulator.member import TOPIC
from tests.fairlead.followers.simulator.timeline import Timeline, ViolationError
from tests.fairlead.followers.simulator.world import plan

BUSY_S, IDLE_S = 0.12, 0.8
LEASE_S = 10.0
COUNTS = {TOPIC: PARTITIONS}
EVERYTHING = frozenset(range(PARTITIONS))


class LedWorld(Timeline[LedMember]):
    """One group, its plan topic, its planner and its members.

    Parameters
    ----------
    seed
        Draws every delay, and what sort of members there are.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.coordinator = GroupCoordinator(lambda: self.time, self.rng)
        #: How many members, of all, give up before others own.
        self.cooperative = self.rng.choice([0.0, 0.0, 0.5, 1.0])
        self.static = self.rng.choice([0.0, 0.0, 0.5, 1.0])
        self.leased = self.rng.random() < 0.3
        self.epoch = 1
        self.retired = self.withdrawn = False
        self.orphaned_since: float | None = None
        self.longest_orphaned_s = 0.0
        self._agreed: dict[Dealt, int | None] = {}
        self._fitted: dict[tuple[Dealt, int | None], Shares] = {}

    def start(self, name: str, *, plain: bool = False) -> None:
        """Start a member, unless one of this name runs."""
        if name in self.members:
            return
        draw = random.Random(f"{self.rng.random() if plain else name}")
        rng = random.Random(self.rng.getrandbits(32))
        cooperative = not plain and rng.random() < self.cooperative
        kind = Kind(
            plain=plain,
            cooperative=cooperative,
            static=draw.random() < self.static,
            background=not plain and not cooperative and rng.random() < 0.5,
        )
        member = LedMember(name, kind, (self.coordinator, self.plans), self.clock, rng)
        self.members[name] = member
        self.after(self.rng.uniform(0, IDLE_S), lambda: self._turn(member))

    def freeze_leader(self) -> None:
        """Freeze whom a rebalance waits for: the leader that joined, or whoever leads."""
        for member in self.members.values():
            if member.member == self.coordinator.leader:
                member.frozen = True

    def publish(self) -> None:
        """Publish the next version of the plan."""
        self.epoch += self.retired
        self.version += 1
        self.retired = self.withdrawn = False
        self.tell()

    def retire(self) -> None:
        """Take the plan back."""
        self.retired = self.version > 0
        self.tell()

    def withdraw(self) -> None:
        """Put a tombstone there, as anybody may."""
        if self.version and self.plans.partitions is not None:
            self.withdrawn = True
            self._write(None, [])

    def tell(self, *, forever: bool = False) -> None:
        """Write what the planner knows, if there is a topic."""
        if not self.version:
            return
        value = plan(self.version)[1]
        if self.retired:
            value = withdrawn_value(GROUP, self.version)
        lapses = self.leased and not self.retired and not forever
        headers = plan_headers(
            value,
            group=GROUP,
            version=self.version,
            origin=Origin("plans", "cluster", self.plans.identity),
            epoch=self.epoch,
            lease_until=self.clock.utc() + timedelta(seconds=LEASE_S) - SKEW if lapses else None,
            kind="withdrawn" if self.retired else "plan",
        )
        self._write(value, headers)

    def garbage(self) -> None:
        """Write records that say nothing, or what is not to be believed."""
        value = plan(self.version + 1)[1]
        elsewhere = plan_headers(
            value,
            group=GROUP,
            version=self.version + 1,
            origin=Origin("plans", "another", self.plans.identity),
            epoch=self.epoch,
            lease_until=None,
        )
        spoilt = [(key, b"?" if key == "sha256" else text) for key, text in elsewhere]
        self._write(*self.rng.choice([(self.rng.randbytes(9), []), (b"{}", elsewhere)]))
        self._write(*self.rng.choice([(value, elsewhere), (value, spoilt), (value[:-1], [])]))

    def _write(self, value: bytes | None, headers: Headers) -> None:
        topic = self.plans
        if topic.partitions is not None:
            home = topic.partitions[topic.home()]
            home.records.append((home.epoch, (value, tuple(headers))))

    def _turn(self, member: LedMember) -> None:
        if not member.frozen and not member.closed:
            assignments = member.assignments
            if member.busy:
                self.coordinator.tick()
            member.step()
            self._check_owners()
            if member.assignments > assignments and member.follower and member.can_commit:
                self._check_status(member, member.follower.status())
        if member.closed:
            if self.members.get(member.name) is member:
                del self.members[member.name]
            return
        pause_s = BUSY_S if member.busy and not member.frozen else IDLE_S
        self.after(self.rng.uniform(0.3 * pause_s, pause_s), lambda: self._turn(member))

    def _check_owners(self) -> None:
        """Check what the last to act has brought about."""
        owned: set[int] = set()
        acting = False
        for member in self.members.values():
            if member.frozen:
                continue
            acting = True
            if not member.can_commit:
                continue
            if not owned.isdisjoint(member.share):
                raise ViolationError(f"{self.time:.2f}: two own something: {self.state()}")
            owned |= member.share
        if owned == EVERYTHING or not acting:
            self.orphaned_since = None
        elif self.orphaned_since is None:
            self.orphaned_since = self.time
        else:
            orphaned_s = self.time - self.orphaned_since
            self.longest_orphaned_s = max(self.longest_orphaned_s, orphaned_s)

    def _check_status(self, member: LedMember, status: FollowerStatus) -> None:
        """Check that a member that reports a plan owns what that says, but for what is not free."""
        dealt = self.coordinator.dealt
        if dealt is None or dealt.generation != member.generation:
            return
        if self._agreed.setdefault(dealt, status.plan_version) != status.plan_version:
            raise ViolationError(f"{self.time:.2f}: two versions in a generation: {self.state()}")
        if status.plan_version is None:
            if status.fallback_reason is None or status.rule == "plan":
                raise ViolationError(f"{self.time:.2f}: {member.name} gives no reason: {status}")
            return
        planned = self._due(member, dealt, status.plan_version)
        others = (
            dealt_to for name, (_, dealt_to) in dealt.members.items() if name != member.member
        )
        held = frozenset[int]().union(*(other.owned for other in others))
        if not planned - held <= member.share <= planned:
            raise ViolationError(f"{self.time:.2f}: {member.name} owns no plan's: {self.state()}")

    def _due(self, member: LedMember, dealt: Dealt, version: int | None) -> frozenset[int]:
        """Return what a member of a generation gets by a plan; None: by range."""
        shares = self._fitted.get((dealt, version))
        if shares is None:
            shares = self._fitted[dealt, version] = self._fit(dealt, version)
        mine = next(
            name
            for name, (instance, _) in dealt.members.items()
            if name == member.member or (instance is not None and instance == member.instance)
        )
        return frozenset(shares[mine].get(TOPIC, ()))

    def _fit(self, dealt: Dealt, version: int | None) -> Shares:
        members = group_members(dealt.members)
        if version is None:
            return decide(PlanState(), members, COUNTS, now=self.clock.utc()).shares
        names = member_names(members)
        fitted = fit(plan(version)[0], {name: [TOPIC] for name in names.values()}, COUNTS)
        return {member_id: fitted[name] for member_id, name in names.items()}

    def healed(self) -> str | None:
        """Say what is not as it should be after all faults have ended; None: nothing."""
        members, dealt = list(self.members.values()), self.coordinator.dealt
        if dealt is None or any(member.busy or not member.can_commit for member in members):
            return f"not all are in the group: {self.state()}"
        if sorted(number for member in members for number in member.share) != sorted(EVERYTHING):
            return f"not everything is owned once: {self.state()}"
        followed = dealt.protocol == PLANS and self.version and not self.retired
        version = self.version if followed else None
        for member in members:
            if member.share != self._due(member, dealt, version):
                return f"{member.name} does not own what version {version} says: {self.state()}"
            if member.follower is not None and member.follower.status().plan_version != version:
                return f"{member.name} does not report version {version}: {self.state()}"
        return None

    def state(self) -> str:
        """Describe every member."""
        group = self.coordinator
        lines = [f"{group.state}, generation {group.generation}, {group.protocol}"]
        for member in self.members.values():
            says = ""
            if member.follower is not None:
                status = member.follower.status()
                says = f"plan {status.plan_version} of {status.latest_version}, "
                says += f"{status.fallback_reason}"
            lines.append(
                f"{member.name}: {member.kind} {member.member}"
                f"{' leads' * (member.member == group.leader)}, "
                f"generation {member.generation}, {member.phase} owns {sorted(member.share)}; "
                f"{'frozen' * member.frozen} {says}"
            )
        return "\n  ".join(lines)
