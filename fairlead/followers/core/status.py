"""A plan follower's status: its partitions, what assigned them, and why it follows no plan.

Belongs here: the status, and the time of its last change. Belongs elsewhere: the events that change
the status (`follower`, `fairlead.followers.confluent.member`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from fairlead.followers.core.clock import Clock
from fairlead.followers.core.meter import ReportedWork
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.wire.document import PlanDocument
from fairlead.wire.members import AssignmentNote
from fairlead.wire.partitions import Pair, by_topic

Rule = Literal["plan", "range", "nothing", "undecided"]
#: Used before the first rebalance has ended, and during each rebalance.
UNDECIDED: Final = AssignmentNote(fallback_reason="a rebalance is under way")
#: Used while the consumer is in no group.
OUTSIDE: Final = AssignmentNote(
    fallback_reason="this consumer is in no group: it has not subscribed, has left, or is closed"
)

#: The fallback reason while a group is converted to the consumer protocol (KIP-848).
BROKER_ASSIGNS: Final = "the group is one of the consumer protocol, in which the broker assigns"


@dataclass(frozen=True)
class FollowerStatus:
    """A plan follower's status, for metrics and for a person on call.

    Parameters
    ----------
    group, plan_topic
        The group id, and the topic of its plans.
    owned
        Numbers of the consumer's partitions, by topic.
    rule
        "plan": a plan assigned the partitions; "range": `range` or the broker assigned them;
        "nothing": this member gave up its partitions, stopped waiting for an assignment by the
        other members, and owns nothing until the next rebalance; "undecided": a rebalance is in
        progress, or the consumer is in no group.
    since
        Time since which the rule applies, by this machine's clock; UTC.
    plan_version
        Version of the plan that the present assignment follows; None: it follows no plan.
    fallback_reason
        Why the present assignment follows no plan; None: it follows a plan.
    idle_reason
        Why the consumer owns nothing although a rebalance has ended; None if it owns partitions.
    latest_version
        Version of the newest plan read; None: there is no plan.
    latest_problem
        Why the newest record was skipped, or why the topic cannot be read; None: no problem.
    records_skipped
        Number of unreadable or badly signed records in the plan topic.
    caught_up
        Whether the plan topic has been read to its end; True if there is no topic.
    rebalances
        Number of assignments received through this plan follower.
    rejoins_asked
        Number of rebalances that this member requested in order to follow plans.
    reported
        Summary of the work that the consumer reports; `str()` formats it. None: reports are off
        (`FollowOptions(report_work=False)`).
    """

    group: str
    plan_topic: str
    owned: Mapping[str, tuple[int, ...]]
    rule: Rule
    since: datetime
    plan_version: int | None
    fallback_reason: str | None
    idle_reason: str | None
    latest_version: int | None
    latest_problem: str | None
    records_skipped: int
    caught_up: bool
    rebalances: int
    rejoins_asked: int
    reported: ReportedWork | None = None


def idle_reason(plan: PlanDocument | None, name: str) -> str:
    """Return why a member has no partitions, and what to do about it.

    Parameters
    ----------
    plan
        The plan that the group follows; None: the group uses `range`.
    name
        The member's `group.instance.id`, or its `client.id` if the member is not static.
    """
    if plan is None:
        return "range gives it no partitions: each topic has fewer partitions than readers"
    share = plan.members.get(name)
    if share is None:
        return (
            f"plan version {plan.version} was made without {name!r}, and leaves no partition for "
            "it: the next plan includes it"
        )
    if not len(share.partitions):
        return (
            f"plan version {plan.version} gives {name!r} no partitions: the other members suffice"
        )
    return (
        f"plan version {plan.version} has a share for {name!r}, but another member with this name "
        "reads it: give each member its own client.id or group.instance.id"
    )


class FollowerState:
    """The rule that assigned a member's partitions, and the time since which the rule applies.

    Parameters
    ----------
    clock
        The time source.
    undecided
        The note in the status during a rebalance: a reason, without a plan version.
    """

    def __init__(self, clock: Clock, undecided: AssignmentNote = UNDECIDED) -> None:
        self.note = OUTSIDE
        self._undecided = undecided
        self.rebalances = 0
        self._utc = clock.utc
        self._rule: Rule = "undecided"
        self._since = clock.utc()

    def leave(self) -> None:
        """Set the state of a consumer that is in no group."""
        if self.note is not OUTSIDE:
            self._change("undecided", OUTSIDE)

    def join(self) -> None:
        """Set the state of a consumer that joins its group."""
        if self.note is OUTSIDE:
            self._change("undecided", self._undecided)

    def unsettle(self) -> None:
        """Handle the start of a rebalance."""
        if self._rule != "undecided":
            self._change("undecided", self._undecided)

    def settle(self, note: AssignmentNote, rule: Rule | None = None) -> None:
        """Handle the end of a rebalance.

        Without `rule`, the rule is "plan" if the note has a plan version, otherwise "range".
        """
        self.rebalances += 1
        self._change(rule or ("range" if note.plan_version is None else "plan"), note)

    def status(
        self,
        group: str,
        reader: PlanReader,
        owned: Iterable[Pair],
        *,
        name: str,
        plan_topic: str,
        rejoins_asked: int,
    ) -> FollowerStatus:
        """Return the plan follower's status, made from this state and the arguments."""
        state, owns = reader.state, by_topic(owned)
        followed = state.plan if self._rule == "plan" else None
        known = self._rule == "range" or followed is not None
        idle = not owns and not self.note.incomplete
        return FollowerStatus(
            group=group,
            plan_topic=plan_topic,
            owned={topic: tuple(numbers) for topic, numbers in owns.items()},
            rule=self._rule,
            since=self._since,
            plan_version=self.note.plan_version,
            fallback_reason=self.note.fallback_reason,
            idle_reason=idle_reason(followed, name) if idle and known else None,
            latest_version=state.plan.version if state.plan else None,
            latest_problem=state.problem,
            records_skipped=state.skipped,
            caught_up=reader.caught_up,
            rebalances=self.rebalances,
            rejoins_asked=rejoins_asked,
        )

    def _change(self, rule: Rule, note: AssignmentNote) -> None:
        self._rule, self.note, self._since = rule, note, self._utc()
