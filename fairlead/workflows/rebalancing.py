"""Trigger rebalances, so that brokers replace target assignments that differ from plans.

To trigger a rebalance, a client of the planner joins the group and leaves again.

Belongs here: when this client joins and how long it stays, and whether the target assignment agrees
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

#: Seconds for which each of the three rebalance triggers stays in a group. Together they stay
#: 11 s: the broker waits 1 s between assignments, and heartbeats are 5 s apart. When a trigger
#: joins, the broker assigns again, but perhaps it has not read the plan yet. So the first two
#: triggers leave soon, and the next trigger joins.
STAYS_S: Final = (1.5, 2.5, 7.0)
_CHECK_EVERY_S: Final = 0.1

Describe = Callable[[Sequence[str]], Mapping[str, BrokerGroup]]


@dataclass(frozen=True)
class BrokerAdoption:
    """Whether a broker follows the plan of a group whose partitions it assigns.

    Parameters
    ----------
    group, version
        The plan.
    reached
        Whether the broker's target assignment gives each member its share in the plan.
    triggers
        Number of rebalance triggers that joined the group.
    reason
        Why the target assignment still differs from the plan; "" if they agree.
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
        """Whether the target assignment gives each member the partitions that the plan gives it."""
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
    """Trigger rebalances until target assignments agree with plans.

    A rebalance trigger is a client that joins a group and leaves soon, so that the broker assigns
    again. Each group has at most one trigger at a time. A group is skipped if no member uses the
    consumer protocol, because a trigger would convert a classic group, or create a missing group.
    To know this, the group is described immediately before a trigger joins. If another planner has
    a trigger in the group, this planner only waits for the target assignment.

    Parameters
    ----------
    goals
        Maps each group to the plan that it should follow.
    describe
        Returns the coordinators' descriptions of groups.
    settings
        The cluster.
    stays_s
        Maximum seconds that the first, second, ... trigger stays; then the next trigger joins.
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
    """One call of `trigger_rebalances`: the groups that are done, and the triggers in groups."""

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
                    trigger.heartbeat()  # joins; if the broker refuses, `watch` reports that
                except Exception as error:  # noqa: BLE001 - any error of the client is reported
                    self._end(group, f"its rebalance cannot be triggered: {error}")
                else:
                    self._times[group] = self._times.get(group, 0) + 1

    def watch(self, until: float) -> None:
        """Wait until all groups are done, or until a time of the monotonic clock."""
        self._describe_pending()  # no pause before this: brokers usually assign at once
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
                self._end(
                    group,
                    "the broker's target assignment did not follow the plan in time; the planner "
                    "tries again",
                )

    def _describe_pending(self) -> Mapping[str, BrokerGroup]:
        """Describe pending groups; groups that follow their plans, or cannot do so, are done."""
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
    """Return why a rebalance of a group must not be triggered; "" if one can be triggered."""
    if described.error is not None:
        return described.error
    if not described.consumers:
        return "it has no members"
    if all(consumer.classic for consumer in described.consumers):
        return "all its members use the classic protocol"
    return not_followed(CONSUMER, described.assignor)
