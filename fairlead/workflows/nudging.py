"""Nudging: groups whose target is not what their plan gives them have it computed anew.

Belongs here: when a group may be nudged, for how long, and whether it has worked. Does not: joining
and leaving (`fairlead.kafka.nudge`), nor which groups have which plan (`following`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from fairlead.domain.advice import not_followed
from fairlead.errors import FairleadError
from fairlead.kafka.consumer_protocol import CONSUMER, BrokerGroup
from fairlead.kafka.descriptions import broker_names
from fairlead.kafka.nudge import Nudge, NudgeConnection
from fairlead.settings import KafkaSettings
from fairlead.wire.document import PlanDocument
from fairlead.wire.fit import fit

#: How long one nudge after the other stays: eleven seconds in all, which are the one that brokers
#: leave between two assignments, and two heartbeats of stock ones. A join has the target computed
#: at once, if that second is over, so that short stays come to it sooner where the first was early:
#: before the assignor had read the plan, say.
STAYS_S: Final = (1.5, 2.5, 7.0)
_LOOK_AGAIN_S: Final = 0.1

Describe = Callable[[Sequence[str]], Mapping[str, BrokerGroup]]


@dataclass(frozen=True)
class BrokerAdoption:
    """What became of a group that a broker assigns.

    Parameters
    ----------
    group, version
        Whose plan.
    reached
        Whether the broker's target is what the plan gives the members, and, where it was before,
        nobody has held the group up for two heartbeats.
    nudges
        How many it took.
    reason
        Why it is not, or nothing.
    """

    group: str
    version: int
    reached: bool
    nudges: int = 0
    reason: str = ""


@dataclass(frozen=True)
class BrokerPlan:
    """A plan that a broker is to follow.

    Parameters
    ----------
    plan
        It.
    counts
        Topic to number of partitions now.
    """

    plan: PlanDocument
    counts: Mapping[str, int]

    def reached(self, found: BrokerGroup) -> bool:
        """Whether the target of a group is what the plan gives those who are in it."""
        names = broker_names(found)
        wanted = fit(
            self.plan,
            {names[consumer.member_id]: consumer.topics for consumer in found.consumers},
            self.counts,
        )
        return all(
            {topic: list(numbers) for topic, numbers in consumer.target.items()}
            == wanted[names[consumer.member_id]]
            for consumer in found.consumers
        )


def nudge_all(
    goals: Mapping[str, BrokerPlan],
    describe: Describe,
    settings: KafkaSettings,
    *,
    stays_s: Sequence[float] = STAYS_S,
    any_assignor: bool = False,
) -> list[BrokerAdoption]:
    """Nudge groups until their targets are as wanted, each by one member at a time.

    A group is described immediately before, and left alone unless a member of the consumer
    protocol is in it: a nudge would convert a classic group, and bring an empty one to life. One
    that somebody else nudges is only watched.

    Parameters
    ----------
    goals
        Group to what it is to follow.
    describe
        Asks coordinators.
    settings
        How to reach the cluster.
    stays_s
        How long each nudge stays at most; it then leaves, and the next one comes.
    any_assignor
        Whether groups are nudged whose assignor follows no plans: to no purpose.
    """
    with (
        NudgeConnection(settings) as connection,
        _Round(goals, describe, settings, any_assignor, connection) as round_,
    ):
        for stay_s in stays_s:
            round_.begin()
            round_.watch(time.monotonic() + stay_s)
            round_.leave()
        round_.give_up()
    return [round_.done[group] for group in goals]


@dataclass
class _Round:
    """Groups on their way: who has been nudged how often, and by whom now."""

    goals: Mapping[str, BrokerPlan]
    describe: Describe
    settings: KafkaSettings
    any_assignor: bool
    connection: NudgeConnection
    done: dict[str, BrokerAdoption] = field(default_factory=dict)
    _times: dict[str, int] = field(default_factory=dict)
    _nudges: dict[str, Nudge] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.leave()

    def begin(self) -> None:
        """Nudge whom it may do good."""
        for group, found in self._look().items():
            if group not in self.done and not any(member.is_nudge for member in found.members):
                try:
                    version = self.goals[group].plan.version
                    nudge = Nudge(self.settings, group, version, by=self.connection)
                    self._nudges[group] = nudge
                    nudge.join()
                except Exception as error:  # noqa: BLE001 - whatever the client says: it is said
                    self._end(group, f"it cannot be nudged: {error}")
                else:
                    self._times[group] = self._times.get(group, 0) + 1

    def watch(self, until: float) -> None:
        """Wait until all groups are as wanted, or refused, or it is so late."""
        self._look()  # a join has had the target computed, as a rule
        while len(self.done) < len(self.goals) and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_S)
            for group, nudge in list(self._nudges.items()):
                if reason := nudge.refused():
                    self._end(group, f"it cannot be nudged: {reason}")
            self._look()

    def leave(self) -> None:
        """Have all nudges leave."""
        for group in list(self._nudges):
            self._nudges.pop(group).leave()

    def give_up(self) -> None:
        """Be done with the groups that are left."""
        for group in self.goals:
            if group not in self.done:
                self._end(group, "its target was not reached in time: again at the next pass")

    def _look(self) -> Mapping[str, BrokerGroup]:
        """Describe the groups that are left, and be done with whom no nudge does good any more."""
        left = [group for group in self.goals if group not in self.done]
        try:
            found = self.describe(left) if left else {}
        except FairleadError as error:
            for group in left:
                self._end(group, str(error))
            return {}
        for group, described in found.items():
            if reason := out_of_reach(described, any_assignor=self.any_assignor):
                self._end(group, reason)
            elif self.goals[group].reached(described):
                self._end(group, "")
        return found

    def _end(self, group: str, reason: str) -> None:
        if group in self._nudges:
            self._nudges.pop(group).leave()
        version, times = self.goals[group].plan.version, self._times.get(group, 0)
        self.done[group] = BrokerAdoption(group, version, not reason, times, reason)


def out_of_reach(found: BrokerGroup, *, any_assignor: bool = False) -> str:
    """Say why a group is not to be nudged, whatever its target is; empty: it may be."""
    if found.error is not None:
        return found.error
    if not found.consumers:
        return "it has no members"
    if all(consumer.classic for consumer in found.consumers):
        return "all its members speak the classic protocol"
    return "" if any_assignor else not_followed(CONSUMER, found.assignor)
