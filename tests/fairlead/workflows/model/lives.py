"""Lives of a plan topic and a database together, at random, under the real code of publication.

Belongs here: what publishers, people, members, brokers and the clock may do, in any order, and what
must hold of it. Does not: what a topic and a database promise (`topic`, `store`).

A publisher stops before and after every step that leaves its process. There it may be frozen for as
long as anything else takes, lose its session, or be killed; several are on their way at once.
`python -m tests.fairlead.workflows.model.lives --lives 10000` lives at length.
"""

import argparse
import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, cast

import numpy as np
from greenlet import getcurrent, greenlet

from fairlead.domain.groups import LiveGroup, LiveMember
from fairlead.errors import FairleadError
from fairlead.followers.core.plan_cache import PlanCache, PlanRecord
from fairlead.kafka.plan_channel import Outgoing
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store import PlanStore
from fairlead.wire.document import MemberShare
from fairlead.workflows.delivery import PublishOptions, accepted
from fairlead.workflows.reconciling import reconcile, withdraw
from tests.fairlead.workflows.model.store import ModelStore
from tests.fairlead.workflows.model.topic import ModelTopic

# clocks: how long it took, for who started it

GROUPS: Final = ("g0", "g1")
OPTIONS: Final = PublishOptions(timedelta(hours=6))
BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
#: Publishers that are on their way at once.
AT_ONCE: Final = 4
#: What happens in a life, before it is settled.
EVENTS: Final = 120


class Killed(BaseException):
    """What a publisher dies of."""


@dataclass
class Follower:
    """A consumer of a group, who has read to an offset."""

    cache: PlanCache
    next_offset: int = 0


@dataclass
class Life:
    """One life; `said` is what happened, for whoever must understand it.

    Parameters
    ----------
    seed
        Says all that happens.
    """

    seed: int
    said: list[str] = field(default_factory=list)
    now: datetime = BEGINNING

    def __post_init__(self) -> None:
        """Begin with an empty topic and an empty database."""
        self.random = Random(self.seed)
        self.hub = getcurrent()
        self.topic, self.store = ModelTopic(self.reach), ModelStore(self.reach)
        self.publishers: dict[str, greenlet] = {}
        self.followers: list[Follower] = []
        self.basis = dict.fromkeys(GROUPS, 0)

    def reach(self, point: str) -> None:
        """Stop a publisher until it is its turn again; people do what they do in one step."""
        if getcurrent() is not self.hub:
            self.hub.switch(point)

    def live_through(self, events: int = EVENTS) -> None:
        """Let things happen, then settle them, and hold both sides against each other."""
        happen: list[tuple[int, Callable[[], None]]] = [
            (40, self.go_on),
            (16, self.publisher_starts),
            (10, self.plan_is_approved),
            (3, self.withdrawal_starts),
            (5, self.publisher_dies),
            (4, self.session_ends),
            (2, self.plan_is_proposed),
            (2, self.plans_expire),
            (5, self.members_change),
            (3, self.time_passes),
            (2, self.topic_is_compacted),
            (2, self.limit_changes),
            (1, self.somebody_writes),
            (6, self.follower_starts),
            (16, self.followers_read),
        ]
        weights = [weight for weight, _ in happen]
        for _ in range(events):
            self.random.choices(happen, weights)[0][1]()
        self.settle()

    # What publishers do.

    def publisher_starts(self) -> None:
        """Begin a run over all groups or one."""
        group = [self.random.choice(GROUPS)]
        groups = self.random.choice([list(GROUPS), group])
        self._start(f"publisher of {','.join(groups)}", lambda: self.publish(groups))

    def withdrawal_starts(self) -> None:
        """Begin to withdraw a group's plan."""
        group = self.random.choice(GROUPS)

        def take_back() -> None:
            withdraw(self._plans, group, topic=self._topic, options=OPTIONS, reason="enough")

        self._start(f"withdrawal of {group}", take_back)

    def publish(self, groups: Collection[str]) -> None:
        """Reconcile groups, as a planning run or the sensor does."""
        began, before = list(self.topic.ends), self.store.version()
        done = list(
            reconcile(
                self._plans,
                groups,
                live=self.live,
                topic=self._topic,
                options=OPTIONS,
                now=self.now,
            )
        )
        undisturbed = before == self.store.version() and not self.store.intents
        if undisturbed and len(groups) == len(GROUPS) and all(o.position for o in done):
            self.topic.passed = began

    def go_on(self) -> None:
        """Let a publisher take a few steps."""
        if self.publishers:
            name = self.random.choice(sorted(self.publishers))
            for _ in range(self.random.randrange(1, 6)):
                self._step(name)

    def publisher_dies(self) -> None:
        """Kill one where it stands."""
        if self.publishers:
            name = self.random.choice(sorted(self.publishers))
            self._kill(name)

    def session_ends(self) -> None:
        """End the session of one that holds a partition, as the database does with the idle."""
        for partition, turn in self.store.holders.items():
            if not turn.lost:
                self.said.append(f"the session that holds partition {partition} is ended")
                turn.lost = True
                return

    # What people, members, brokers and the clock do.

    def plan_is_proposed(self) -> None:
        """Propose a plan that waits."""
        group = self.random.choice(GROUPS)
        self.said.append(f"{group}: proposed")
        self.store.propose(group, self.shares(group), self.now)

    def plan_is_approved(self) -> None:
        """Propose a plan and approve it."""
        group = self.random.choice(GROUPS)
        self.store.propose(group, self.shares(group), self.now)
        for plan in self.store.of(group, "proposed"):
            self.said.append(f"{group}: version {plan.version} approved")
            if not self.store.locked(group):
                self.store.step(plan, "approved")

    def plans_expire(self) -> None:
        """End what waits in a group."""
        group = self.random.choice(GROUPS)
        if not self.store.locked(group):
            self.said.append(f"{group}: expired")
            self.store.close_open(group)

    def members_change(self) -> None:
        """Let a member join, so that what was planned before fits no more."""
        group = self.random.choice(GROUPS)
        self.said.append(f"{group}: a member joins")
        self.basis[group] += 1

    def time_passes(self) -> None:
        """Use leases up."""
        self.now += timedelta(hours=self.random.choice([1, 3, 7]))

    def topic_is_compacted(self) -> None:
        """Leave the newest record of each key."""
        self.topic.compact()

    def limit_changes(self) -> None:
        """Let the broker refuse a group's records, or take them again."""
        group = self.random.choice(GROUPS)
        self.said.append(f"{group}: its records are refused, or no more")
        self.topic.too_large ^= {group}

    def somebody_writes(self) -> None:
        """Cover a group's record with garbage, or a tombstone."""
        group = self.random.choice(GROUPS)
        self.said.append(f"{group}: covered")
        home = self.topic.partition_for_key(group)
        if self.random.random() < 1 / 2:
            self.topic.append(home, Outgoing(group, b"garbage", []))
        else:
            offset, self.topic.ends[home] = self.topic.ends[home], self.topic.ends[home] + 1
            self.topic.logs[home].append(PlanRecord(offset, group.encode(), None))

    def follower_starts(self) -> None:
        """Begin to follow a group; nothing is known yet."""
        group = self.random.choice(GROUPS)
        self.followers.append(Follower(PlanCache(group, self.topic.origin, None)))

    def followers_read(self) -> None:
        """Read to the end; what is followed then was published, or is just being."""
        for follower in self.followers:
            group = follower.cache._group  # noqa: SLF001 - whose it is
            for record in self.topic.logs[self.topic.partition_for_key(group)]:
                if record.offset >= follower.next_offset:
                    follower.cache.apply(record)
                    follower.next_offset = record.offset + 1
            if (plan := follower.cache.state.plan) is not None:
                state = self.store.plans[group, plan.version].state
                assert state in {"sending", "published"}, (group, plan.version, state)

    # What must hold.

    def settle(self) -> None:
        """Finish or kill whoever is on the way; one undisturbed run later, both sides agree."""
        for name in sorted(self.publishers):
            if self.random.random() < 1 / 2:
                self._kill(name)
        while self.publishers:
            for name in sorted(self.publishers):
                self._step(name)
        self.said.append("settled")
        self.topic.too_large.clear()
        self.publish(GROUPS)
        ends = list(self.topic.ends)
        self.publish(GROUPS)
        assert self.topic.ends == ends, "there was nothing left to say"
        assert not self.store.intents
        self.followers += [Follower(PlanCache(group, self.topic.origin, None)) for group in GROUPS]
        self.followers_read()
        for group in GROUPS:
            self.agree(group)

    def agree(self, group: str) -> None:
        """Hold the database, the topic and every follower of a group against each other."""
        plans = self.store.of(group)
        assert [plan.version for plan in plans] == list(range(1, len(plans) + 1))
        published = [plan for plan in plans if plan.state == "published"]
        assert len(published) <= 1
        assert {plan.state for plan in plans}.isdisjoint({"approved", "sending"})
        version = published[0].version if published else None
        record = self.topic.newest(self.topic.partition_for_key(group), [group]).get(group)
        said = None if record is None else accepted(record, self.topic.origin, None)
        if published:
            assert record is not None
            assert record.value == published[0].document
        elif self.store.told.get(group) is not None:
            assert said is not None
            assert said.plan is None
        else:
            assert said is None
        for follower in self.followers:
            if follower.cache._group == group:  # noqa: SLF001 - whose it is
                state = follower.cache.state
                followed = None if state.plan is None else state.plan.version
                assert followed == version, (group, followed, version)
                assert followed is None or (state.lease_until or self.now) > self.now

    @property
    def _plans(self) -> PlanStore:
        return cast(PlanStore, self.store)

    @property
    def _topic(self) -> PlanTopic:
        return cast(PlanTopic, self.topic)

    def _start(self, what: str, run: Callable[[], None]) -> None:
        if len(self.publishers) == AT_ONCE:
            return
        name = f"{what} #{len(self.said)}"
        self.said.append(f"{name} starts")

        def live() -> None:
            try:
                run()
            except FairleadError as error:
                self.said.append(f"{name} fails: {error}")
            except Killed:
                pass

        self.publishers[name] = greenlet(live)

    def _step(self, name: str) -> None:
        if name in self.publishers:
            point = self.publishers[name].switch()
            if self.publishers[name].dead:
                del self.publishers[name]
            else:
                self.said.append(f"{name}: {point}")

    def _kill(self, name: str) -> None:
        self.said.append(f"{name} is killed")
        if started := self.publishers.pop(name):
            started.throw(Killed)

    def shares(self, group: str) -> dict[str, MemberShare]:
        """Plan for a group as it is."""
        joined = f"m{self.basis[group]}"
        first, second = self.random.sample([0, 1], 2)
        return {
            "m": MemberShare(("t",), {"t": np.array([first], np.int32)}),
            joined: MemberShare(("t",), {"t": np.array([second], np.int32)}),
        }

    def live(self, groups: Iterable[str]) -> dict[str, LiveGroup]:
        """Describe groups as they are."""
        self.reach("before describing")
        return {group: self._live(group) for group in groups}

    def _live(self, group: str) -> LiveGroup:
        members = tuple(
            LiveMember(name, name, "", None, name, ("t",), {}, 1)
            for name in ("m", f"m{self.basis[group]}")
        )
        return LiveGroup(group, "Stable", "", members, {"t": 2}, self.now)


def live_many(first: int, lives: int) -> None:
    """Live lives of successive seeds; the first that fails says its seed and all that happened."""
    for seed in range(first, first + lives):
        life = Life(seed)
        try:
            life.live_through()
        except BaseException as error:
            error.add_note("\n".join([f"seed {seed}", *life.said]))
            raise


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lives", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    logging.getLogger("fairlead").setLevel(logging.CRITICAL)
    began = time.monotonic()
    live_many(given.first, given.lives)
    print(f"{given.lives:,} lives in {time.monotonic() - began:.0f} s: both sides agree")  # noqa: T201
