"""Trigger rebalances, so that brokers replace target assignments that differ from plans.

Belongs here: when a trigger joins and how long it stays, and whether the target assignment agrees
with the plan. Belongs elsewhere: joining and leaving (`fairlead.kafka.rebalance_trigger`), and the
plans of groups (`following`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from fairlead.domain.advice import not_followed
from fairlead.errors import FairleadError
from fairlead.kafka.consumer_protocol import CONSUMER, BrokerGroup
from fairlead.kafka.rebalance_trigger import RebalanceTrigger, TriggerConnection
from fairlead.settings import KafkaSettings
from fairlead.wire.document import PlanDocument
from fairlead.wire.fit import fit
from fairlead.wire.members import member_names

#: Seconds for which consecutive rebalance triggers stay in a group. Their sum is 11 s, which is the
#: broker's 1 s between assignments plus two heartbeat intervals of 5 s. Short stays come first: if
#: the assignor did not have the plan when one trigger joined, the broker assigns again when the
#: next trigger joins.
STAYS_S: Final = (1.5, 2.5, 7.0)
_CHECK_EVERY_S: Final = 0.1

Describe = Callable[[Sequence[str]], Mapping[str, BrokerGroup]]


@dataclass(frozen=True)
class BrokerAdoption:
    """Whether a broker follows the plan of a group that it assigns.

    Parameters
    ----------
    group, version
        The plan.
    reached
        Whether the broker's target assignment gives each member its share in the plan.
    triggers
        Number of rebalance triggers that joined the group.
    reason
        Why the target assignment differs from the plan; "" if it does not.
    """

    group: str
    version: int
    reached: bool
    triggers: int = 0
    reason: str = ""


@dataclass(frozen=True)
class BrokerPlan:
    """A plan that a broker should follow.

    Parameters
    ----------
    plan
        The document.
    counts
        Maps each topic to its present number of partitions.
    """

    plan: PlanDocument
    counts: Mapping[str, int]

    def reached(self, described: BrokerGroup) -> bool:
        """Whether a group's target assignment gives its members their shares in the plan."""
        names = member_names(described.consumers)
        wanted = fit(
            self.plan,
            {names[consumer.member_id]: consumer.topics for consumer in described.consumers},
            self.counts,
        )
        return all(
            {topic: list(numbers) for topic, numbers in consumer.target.items()}
            == wanted[names[consumer.member_id]]
            for consumer in described.consumers
        )


def trigger_rebalances(
    goals: Mapping[str, BrokerPlan],
    describe: Describe,
    settings: KafkaSettings,
    *,
    stays_s: Sequence[float] = STAYS_S,
) -> list[BrokerAdoption]:
    """Trigger rebalances until target assignments agree with plans, one at a time per group.

    Describes each group immediately before its trigger joins. Skips the group if no member uses the
    consumer protocol, because a trigger would convert a classic group, or create a missing group.
    If another planner has a trigger in a group, only watches the group.

    Parameters
    ----------
    goals
        Maps each group to the plan that it should follow.
    describe
        Returns the coordinators' descriptions of groups.
    settings
        The cluster.
    stays_s
        Maximum stay of each rebalance trigger, in seconds; then the next one joins.
    """
    with (
        TriggerConnection(settings) as connection,
        _Round(goals, describe, connection) as round_,
    ):
        for stay_s in stays_s:
            round_.begin()
            round_.watch(time.monotonic() + stay_s)
            round_.leave()
        round_.give_up()
    return [round_.done[group] for group in goals]


@dataclass
class _Round:
    """The state of one call of `trigger_rebalances`: finished groups, and triggers in groups."""

    goals: Mapping[str, BrokerPlan]
    describe: Describe
    connection: TriggerConnection
    done: dict[str, BrokerAdoption] = field(default_factory=dict)
    _times: dict[str, int] = field(default_factory=dict)
    _triggers: dict[str, RebalanceTrigger] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.leave()

    def begin(self) -> None:
        """Make a trigger join each group whose target assignment differs from its plan."""
        for group, described in self._describe_pending().items():
            if group not in self.done and not any(
                member.is_trigger for member in described.members
            ):
                try:
                    version = self.goals[group].plan.version
                    trigger = RebalanceTrigger(self.connection, group, version)
                    self._triggers[group] = trigger
                    trigger.heartbeat()  # `watch` reports a refusal
                except Exception as error:  # noqa: BLE001 - any error of the client is reported
                    self._end(group, f"its rebalance cannot be triggered: {error}")
                else:
                    self._times[group] = self._times.get(group, 0) + 1

    def watch(self, until: float) -> None:
        """Wait until all groups are done, or until a time of the monotonic clock."""
        self._describe_pending()  # brokers usually assign as soon as a trigger joins
        while len(self.done) < len(self.goals) and time.monotonic() < until:
            time.sleep(_CHECK_EVERY_S)
            for group, trigger in list(self._triggers.items()):
                if reason := trigger.heartbeat():
                    self._end(group, f"its rebalance cannot be triggered: {reason}")
            self._describe_pending()

    def leave(self) -> None:
        """Make all triggers leave their groups."""
        for group in list(self._triggers):
            self._triggers.pop(group).leave()

    def give_up(self) -> None:
        """Report the groups whose target assignments still differ from their plans."""
        for group in self.goals:
            if group not in self.done:
                self._end(group, "its target was not reached in time; the next pass tries again")

    def _describe_pending(self) -> Mapping[str, BrokerGroup]:
        """Describe the pending groups; finish groups that agree with their plans or never will."""
        pending = [group for group in self.goals if group not in self.done]
        try:
            descriptions = self.describe(pending) if pending else {}
        except FairleadError as error:
            for group in pending:
                self._end(group, str(error))
            return {}
        for group, described in descriptions.items():
            if reason := out_of_reach(described):
                self._end(group, reason)
            elif self.goals[group].reached(described):
                self._end(group, "")
        return descriptions

    def _end(self, group: str, reason: str) -> None:
        if group in self._triggers:
            self._triggers.pop(group).leave()
        version, times = self.goals[group].plan.version, self._times.get(group, 0)
        self.done[group] = BrokerAdoption(group, version, not reason, times, reason)


def out_of_reach(described: BrokerGroup) -> str:
    """Return why no rebalance of a group may be triggered; "" if it may be."""
    if described.error is not None:
        return described.error
    if not described.consumers:
        return "it has no members"
    if all(consumer.classic for consumer in described.consumers):
        return "all its members use the classic protocol"
    return not_followed(CONSUMER, described.assignor)
