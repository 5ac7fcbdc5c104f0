"""One consumer of a simulated group: a real member on a modelled client, or a plain consumer."""

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fairlead.followers.confluent.log_listener import LogListener
from fairlead.followers.confluent.member import Event, FollowingMember, State
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.follower import FollowOptions
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.wire.partitions import Pair
from tests.fairlead.followers.simulator.coordinator import Coordinator
from tests.fairlead.followers.simulator.interruption import Interrupted, Interruption, traced
from tests.fairlead.followers.simulator.logs import (
    GROUP,
    SimulatedCoordinationTopic,
    SimulatedPlanSource,
    Topic,
)

TOPIC = "t"
READ_PLANS_S = 0.3
#: Probability that an application is too busy to poll in a step.
BUSY = 0.75


class SimulatedClient:
    """Model of librdkafka's consumer: heartbeats in the background, callbacks within a poll."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self.listener: FollowingMember | PlainListener
        self.member: str | None = None
        self.generation = -1
        self.wants = self.leaving = self._acted = False
        #: State of the membership: "out", "joining" or "in".
        self.phase = "out"
        self.queue: list[tuple[str, tuple[int, ...]]] = []
        self.share: frozenset[Pair] = frozenset()

    @property
    def can_commit(self) -> bool:
        """Return whether the coordinator would accept a commit."""
        return self.member is not None and self._coordinator.valid(self.member, self.generation)

    def beat(self) -> None:
        """Do librdkafka's background work: join, send a heartbeat, queue callbacks."""
        if not self._coordinator.reachable:
            return
        if self.phase == "out" and self.wants and not self.queue:
            self.member = self._coordinator.join(None)
            self.phase = "joining"
        elif self.phase == "joining" and self.member is not None:
            self._hear_of_the_generation(self.member)
        elif self.phase == "in" and self.member is not None:
            answer = self._coordinator.heartbeat(self.member)
            if answer == "rejoin" and not any(what == "revoke" for what, _ in self.queue):
                self.queue.append(("revoke", ()))
            elif answer == "unknown":
                self.queue = [("lost", ())]
                self.phase, self.member, self.generation = "out", None, -1

    def poll(self, timeout_s: float) -> None:
        """Run due callbacks."""
        del timeout_s
        while self.queue:
            what, given = self.queue.pop(0)
            self._acted = False
            try:
                if what == "assign":
                    self.listener.assigned([(TOPIC, number) for number in given])
                elif what == "lost":
                    self.listener.lost()
                else:
                    self.listener.revoked()
            finally:
                # confluent-kafka assigns or revokes, unless the callback has already done this.
                if not self._acted:
                    self.share = frozenset((TOPIC, n) for n in given if what == "assign")
                if what == "revoke":
                    self._go()

    def identity(self) -> tuple[int, str]:
        """Return the generation and this member's id."""
        return (self.generation, self.member) if self.member and self.generation >= 0 else (-1, "")

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group."""
        del topics
        self.wants = True

    def unsubscribe(self) -> None:
        """Leave the group."""
        self.wants, self.leaving = False, True
        if self.phase == "in":
            self.queue = [("revoke", ())]
        else:
            self._go()

    def own(self, share: Sequence[Pair]) -> None:
        """Start to fetch these partitions."""
        self._acted = True
        self.share = frozenset(share)

    def disown(self) -> None:
        """Stop fetching."""
        self._acted = True
        self.share = frozenset()

    def owned(self) -> list[Pair]:
        """Return the fetched partitions."""
        return list(self.share)

    def notify(self, event: Event, share: Sequence[Pair]) -> None:
        """Do nothing: the application has no callback."""

    def _hear_of_the_generation(self, member: str) -> None:
        self._coordinator.tick()
        place = self._coordinator.members.get(member)
        if place is None:
            self.phase, self.member = "out", None
        elif not place.joined:  # the next rebalance began before this member got its share
            self._coordinator.join(member)
        elif self._coordinator.joining_until is None:
            self.phase, self.generation = "in", self._coordinator.generation
            self.queue.append(("assign", place.given))

    def _go(self) -> None:
        """Rejoin or leave."""
        if self.leaving:
            self.leaving = False
            if self.member is not None:
                self._coordinator.leave(self.member)
            self.queue = []
            self.phase, self.member, self.generation = "out", None, -1
        elif self.phase == "in":
            self.member = self._coordinator.join(self.member)
            self.phase = "joining"


class PlainListener:
    """Callbacks of a plain consumer, which does not follow plans."""

    def __init__(self, client: SimulatedClient) -> None:
        self._client = client

    def assigned(self, partitions: Sequence[Pair]) -> None:
        """Fetch the partitions that `range` assigned."""
        self._client.own(partitions)

    def revoked(self) -> None:
        """Stop fetching."""
        self._client.disown()

    def lost(self) -> None:
        """Stop fetching."""
        self._client.disown()


class SimulatedMember:
    """A simulated consumer process."""

    def __init__(
        self,
        name: str,
        coordinator: Coordinator,
        topics: tuple[Topic, Topic] | None,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.name = name
        self.client = SimulatedClient(coordinator)
        self.frozen = self.closed = self.interrupted = False
        self.subscribed = True
        self.busy_s = self.idle_s = 0.0
        self.interruption: Interruption | None = None
        self.plans: FollowingMember | None = None
        self._clock = clock
        self._rng = rng
        self._read_at = 0.0
        if topics is None:
            self.client.listener = PlainListener(self.client)
            self.client.wants = True
            return
        plan_topic, agreement_topic = topics
        options = FollowOptions("plans", rejoin_jitter_s=1.0)
        self.reader = PlanReader(
            GROUP,
            open_source=lambda: SimulatedPlanSource.open(plan_topic),
            verifier=options.verifier(),
            on_tick=lambda: None,
            clock=clock,
        )
        topic: Any = SimulatedCoordinationTopic(agreement_topic)
        listener = LogListener(GROUP, topic, clock, rng)
        self.plans = FollowingMember(
            group=GROUP,
            client_id=name,
            options=options,
            client=self.client,
            listener=listener,
            reader=self.reader,
            clock=clock,
            rng=rng,
        )
        self.client.listener = self.plans
        self.plans.subscribe([TOPIC])

    @property
    def joining(self) -> bool:
        """Return whether the client is about to join a generation."""
        return self.client.phase != "in" or bool(self.client.queue)

    @property
    def undecided(self) -> bool:
        """Return whether an agreement round is in progress."""
        return self.plans is not None and self.plans.state is State.AGREEING

    def step(self) -> bool:
        """Do background work, then poll unless the application is busy; return whether it polled.

        Even a busy application polls if it is outside the group or in an agreement round, or if a
        callback is due.
        """
        self.client.beat()
        idle = self.client.phase != "out" and not self.client.queue and not self.undecided
        if idle and self._rng.random() < BUSY:
            return False
        self._poll()
        return True

    def _poll(self) -> None:
        if self.plans is None:
            self.client.poll(0.0)
            return
        if self._clock.monotonic() >= self._read_at:
            pause_s = self.reader.advance(0.0)
            self._read_at = self._clock.monotonic() + max(pause_s, READ_PLANS_S)
        self.interrupted = False
        if self.interruption is None or self.interruption.raised:
            self.plans.fetch(self.client.poll, 0.0, nothing=None)
            return
        self.interrupted = True
        with suppress(Interrupted), traced(self.interruption):
            self.plans.fetch(self.client.poll, 0.0, nothing=None)
            self.interrupted = False

    def subscribe(self, *, wanted: bool) -> None:
        """Subscribe or unsubscribe, if this changes the subscription."""
        if self.frozen or self.plans is None or wanted == self.subscribed:
            return
        self.subscribed = wanted
        if wanted:
            self.plans.subscribe([TOPIC])
        else:
            self.plans.unsubscribe()

    def close(self) -> None:
        """Leave the group, and close the plan follower."""
        self.closed = True
        self.client.unsubscribe()
        self.client.poll(0.0)
        if self.plans is not None:
            self.plans.close()
