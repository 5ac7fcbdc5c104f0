"""One consumer of a group whose leader decides: the real follower on a modelled client.

The client is shaped like kafka-python's: it polls to join, its connection goes on between polls,
and a cooperative one owns what it owned while the group rebalances. `background` makes it one like
aiokafka's, which joins without being polled, and reads the plan before.
"""

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.followers.core.clock import Clock
from fairlead.followers.core.follower import Follower, FollowOptions
from fairlead.followers.core.plan_cache import PlanRecord, PlanState
from fairlead.followers.core.plan_or_fallback import decide
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.wire.members import GroupMember, decode_subscription
from tests.fairlead.followers.simulator.join_group import (
    GroupCoordinator,
    Joined,
    Protocols,
    Request,
    Shares,
    Subscription,
    Synced,
)
from tests.fairlead.followers.simulator.logs import (
    GROUP,
    PARTITIONS,
    SimulatedPlanSource,
    Topic,
)
from tests.fairlead.followers.simulator.member import TOPIC

PLANS, RANGE = "fairlead", "range"
READ_PLANS_S = 0.4
# clock: of simulated time
OPTIONS = FollowOptions("plans", read_timeout_s=1.0, rejoin_jitter_s=1.0)


class WaitingError(Exception):
    """Raised where the client's thread would stand still; what was called is called again."""


@dataclass(frozen=True)
class Kind:
    """What sort of consumer it is."""

    plain: bool = False
    cooperative: bool = False
    static: bool = False
    background: bool = False


class DrivenReader(PlanReader):
    """A reader without a thread: whoever made it lets it advance."""

    def start(self) -> None:
        """Do nothing."""


class OwnPlanSource(SimulatedPlanSource):
    """A connection that may break for one member alone."""

    blind: Callable[[], bool]

    def read(self, timeout_s: float) -> list[PlanRecord]:
        """Return what is new."""
        return [] if self.blind() else super().read(timeout_s)


class LedMember:
    """A consumer and its process."""

    def __init__(
        self,
        name: str,
        kind: Kind,
        around: tuple[GroupCoordinator, Topic],
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.name, self.kind = name, kind
        self.frozen = self.stalled = self.blind = self.closed = False
        self.share: frozenset[int] = frozenset()
        #: "starting", "out", "joining", "assigning", "syncing" or "in".
        self.phase = "starting" if kind.background else "out"
        self.member: str | None = None
        self.generation = -1
        self.rejoin_needed = True
        self.assignments = 0
        self._coordinator, self._plans = around
        self._clock = clock
        self._request = Request("")
        self._joined = Joined(-1, "")
        self._wait_until: float | None = None
        self._read_at = 0.0
        self._readers: list[DrivenReader] = []
        self.follower: Follower | None = None
        if not kind.plain:
            self.follower = Follower(
                GROUP, OPTIONS, self._open, clock=clock, rng=rng, new_reader=self._new_reader
            )
            self.follower.rejoin_by(self.request_rejoin)

    @property
    def instance(self) -> str | None:
        """The `group.instance.id`."""
        return self.name if self.kind.static else None

    @property
    def can_commit(self) -> bool:
        """Whether the coordinator would take a commit."""
        return self._coordinator.valid(self.member, self.generation)

    @property
    def busy(self) -> bool:
        """Whether something is under way."""
        return self.phase != "in" or self.rejoin_needed

    def request_rejoin(self) -> None:
        """Let the next poll join again."""
        self.rejoin_needed = True

    def step(self) -> None:
        """Read plans, beat, and poll."""
        now = self._clock.monotonic()
        if now >= self._read_at:
            for reader in self._readers:
                self._read_at = now + max(reader.advance(0.0), READ_PLANS_S)
        if not self._coordinator.reachable:
            self._lose_request()
            return
        self._beat()
        self._go_on()
        if self.kind.background or not self.stalled:
            self._poll()

    def close(self) -> None:
        """Leave the group in order; a static member says nothing."""
        self.closed = True
        if self.member is not None and not self.kind.static and self._coordinator.reachable:
            self._coordinator.leave(self.member)

    def _beat(self) -> None:
        if self.phase != "in" or self.member is None:
            return
        match self._coordinator.heartbeat(self.member, self.generation):
            case "rebalancing":
                self.request_rejoin()
            case "unknown" | "illegal generation" as answer:
                self._lose(forget=answer == "unknown" or self.kind.background)

    def _lose(self, *, forget: bool) -> None:
        """Be out of the generation, and of the group maybe."""
        self.phase, self.generation, self.rejoin_needed = "out", -1, True
        if forget:
            self.member = None

    def _lose_request(self) -> None:
        if self.phase in {"joining", "assigning", "syncing"}:
            self.phase, self.rejoin_needed, self._wait_until = "out", True, None

    def _poll(self) -> None:
        """Join, or take in what was assigned."""
        if self.phase == "starting":
            self._read_ahead()
        elif self.phase in {"out", "in"} and self.rejoin_needed:
            self._join()
        elif self.phase == "syncing" and isinstance(self._request.answer, Synced):
            self._complete(self._request.answer)

    def _read_ahead(self) -> None:
        assert self.follower is not None
        try:
            self.follower.read_ahead()
        except WaitingError:
            return
        self.phase = "out"

    def _join(self) -> None:
        if self.generation == -1 or not self.kind.cooperative:
            self.share = frozenset()
        self._request = self._coordinator.join(self.member, self.instance, self._metadata())
        self.member = self._request.member
        self.phase = "joining"

    def _metadata(self) -> Protocols:
        if self.follower is None:
            return {RANGE: Subscription()}
        user_data = self.follower.subscription(self.name, self.instance)
        if self.kind.cooperative:
            return {PLANS: Subscription(user_data, self.share)}
        return {PLANS: Subscription(user_data), RANGE: Subscription()}

    def _go_on(self) -> None:
        """Do what the connection does with answers, whether or not the application polls."""
        answer = self._request.answer
        if self.phase == "joining" and isinstance(answer, Joined):
            self.generation, self._joined = answer.generation, answer
            self.phase = "assigning"
        elif self.phase in {"joining", "syncing"}:
            self._fail(answer)
        if self.phase == "assigning":
            self._assign(self._joined)

    def _fail(self, answer: object) -> None:
        """Join again where a request was refused."""
        match answer:
            case "unknown":
                self._lose(forget=True)
            case "illegal generation":
                self._lose(forget=self.kind.background)
            case "rebalancing" | "moved":
                self.phase, self.rejoin_needed = "out", True
            case "inconsistent":
                self.closed = True  # an error that the application hears of

    def _assign(self, joined: Joined) -> None:
        assert self.member is not None
        shares: Shares | None = None
        if joined.members is not None:
            try:
                shares = self._decide(joined)
            except WaitingError:
                return
        self._request = self._coordinator.sync(self.member, joined.generation, shares)
        self.phase = "syncing"
        if self.kind.background:
            self.rejoin_needed = False
        self._fail(self._request.answer)

    def _decide(self, joined: Joined) -> Shares:
        members = group_members(joined.members or {})
        if joined.protocol == RANGE or self.follower is None:
            ranged = decide(PlanState(), members, {TOPIC: PARTITIONS}, now=self._clock.utc())
            shares, user_data = ranged.shares, b""
        else:
            shares, user_data = self.follower.assign(members, {TOPIC: PARTITIONS})
        return {
            name: (frozenset(share.get(TOPIC, ())), user_data) for name, share in shares.items()
        }

    def _complete(self, synced: Synced) -> None:
        revoked = self.share - synced.share
        self.share = synced.share
        self.phase, self.rejoin_needed = "in", False
        self.assignments += 1
        if self._joined.protocol != PLANS or self.follower is None:
            return
        self.follower.assigned(synced.user_data, self.generation)
        if self.kind.cooperative and revoked:
            self.request_rejoin()

    def _open(self) -> OwnPlanSource | None:
        if self.blind:
            raise ConnectionError
        source = OwnPlanSource.open(self._plans)
        if source is not None:
            source.blind = lambda: self.blind
        return source

    def _new_reader(self, group: str, **parts: Any) -> PlanReader:
        reader = DrivenReader(group, **parts, wait=self._wait)
        self._readers.append(reader)
        return reader

    def _wait(
        self, condition: threading.Condition, ready: Callable[[], bool], timeout_s: float
    ) -> bool:
        del condition
        now = self._clock.monotonic()
        if self._wait_until is None:
            self._wait_until = now + timeout_s
        if not ready() and now < self._wait_until:
            raise WaitingError
        self._wait_until = None
        return ready()


def group_members(
    members: Mapping[str, tuple[str | None, Subscription]],
) -> list[GroupMember]:
    """Return a group as its leader sees it."""
    gathered = []
    for member, (instance, subscription) in members.items():
        note = decode_subscription(subscription.user_data)
        gathered.append(
            GroupMember(
                member_id=member,
                topics=(TOPIC,),
                instance_id=instance or note.instance_id,
                client_id=note.client_id,
                seen=note.seen,
                lapsed=note.lapsed,
                owned={TOPIC: sorted(subscription.owned)},
            )
        )
    return gathered
