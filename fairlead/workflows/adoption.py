"""Adoption: the consumers' partitions compared with the published plan.

Belongs here: computing the adherence, and waiting until consumers have taken over their planned
partitions. Belongs elsewhere: reading live assignments (`fairlead.kafka`), the tables
(`fairlead.store`).
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from fairlead.common.words import listed, plural
from fairlead.domain.as_problem import Ownership, assignment_of, planned, problem_of
from fairlead.domain.figures import adherence
from fairlead.domain.groups import LiveGroup
from fairlead.domain.records import SeenAdoption, StoredPlan
from fairlead.errors import GroupError, InvalidPlanError, TamperedPlanError
from fairlead.store.plans import PlanStore
from fairlead.wire.document import PlanDocument
from fairlead.wire.fit import fit

#: Seconds between two checks whether a group follows its plan.
CHECK_EVERY_S: Final = 1.0
#: If a member keeps partitions planned for other members for this many seconds, the member is
#: reported. Twice the default `heartbeat.interval.ms`.
HELD_UP_S: Final = 6.0
#: Seconds that consumers have to rejoin after a publication.
PATIENCE_S: Final = 20.0


@dataclass(frozen=True)
class Adoption:
    """The degree to which a group follows its plan.

    Parameters
    ----------
    planned
        Number of partitions to which the plan, adapted to the live members, gives an owner.
    as_planned
        Number of these partitions whose owner is the planned one.
    holders
        Members that own partitions planned for other members, ascending.
    """

    planned: int
    as_planned: int
    holders: tuple[str, ...] = ()

    @property
    def adherence(self) -> float | None:
        """The share of planned partitions with their planned owner; None if none is planned."""
        return adherence(self.as_planned, self.planned)


def compare(
    plan: PlanDocument,
    owned: Ownership,
    subscriptions: Mapping[str, Collection[str]] | None = None,
    partition_counts: Mapping[str, int] | None = None,
) -> Adoption:
    """Adapt a plan to the live members, and compare the live assignment with the result.

    Parameters
    ----------
    plan
        The published plan.
    owned
        Maps each live member to its partitions.
    subscriptions
        Maps each live member to its topics. Default: the member's topics in the plan, or all topics
        if the member is not in the plan.
    partition_counts
        Maps each topic to its present number of partitions; None: the numbers in the plan.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import UTC, datetime
    >>> from fairlead.wire.document import MemberShare
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> plan = PlanDocument("g", 1, "id", "range", day, day, {"t": 2},
    ...                     {"a": MemberShare(("t",), {"t": np.array([0, 1], np.int32)})})
    >>> compare(plan, {"a": {"t": [0]}, "b": {"t": [1]}}).adherence
    0.5
    """
    shares: Ownership = planned(plan)
    topics = {name: share.topics for name, share in plan.members.items()}
    if owned:
        known = {**topics, **(subscriptions or {})}
        topics = {name: tuple(known.get(name, plan.partition_counts)) for name in owned}
        shares = fit(plan, topics, partition_counts or plan.partition_counts)
    problem = problem_of(plan, shares, topics)
    should, live = assignment_of(problem, shares).owner, assignment_of(problem, owned)
    elsewhere = (should >= 0) & (live.owner >= 0) & (should != live.owner)
    return Adoption(
        planned=int((should >= 0).sum()),
        as_planned=int(((should >= 0) & (should == live.owner)).sum()),
        holders=tuple(sorted({problem.members[place] for place in set(live.owner[elsewhere])})),
    )


@dataclass(frozen=True)
class Observed:
    """The result of checking whether a group follows its published plan.

    Parameters
    ----------
    plan
        The plan.
    at
        Time of the live assignment; None: the assignment could not be read.
    adoption
        The degree to which the group follows the plan; None: the assignment could not be read.
    error
        Why the assignment could not be read.
    holders
        Members that, at every check so far, owned partitions planned for other members.
    held_s
        Seconds from the first check to the last.
    """

    plan: StoredPlan
    at: datetime | None = None
    adoption: Adoption | None = None
    error: str = ""
    holders: tuple[str, ...] = ()
    held_s: float = 0.0

    @property
    def held_up(self) -> str:
        """A warning that names the `holders`; "" if none kept its partitions for `HELD_UP_S`."""
        if not self.holders or self.held_s < HELD_UP_S:
            return ""
        return (
            f"for {self.held_s:.0f} s, {listed(self.holders, at_most=3)} kept partitions that the "
            "plan gives to other members: check status() of each; restart members that follow "
            "plans, replace those that do not"
        )


def observe(
    plans: Sequence[StoredPlan],
    live: Callable[[Iterable[str]], Mapping[str, LiveGroup | GroupError]],
    *,
    patiently: Collection[str],
    until: float,
) -> list[Observed]:
    """Check whether groups follow their published plans; check those in `patiently` repeatedly.

    Parameters
    ----------
    plans
        Published plans, one per group.
    live
        Describes groups as they are now.
    patiently
        Groups to check every `CHECK_EVERY_S` until they follow their plan completely.
    until
        When to stop the repeated checks, as a value of `time.monotonic()`.

    Returns
    -------
    The result of each group's last check, in the order of the plans.
    """
    observations: dict[str, Observed] = {}
    documents: dict[str, PlanDocument] = {}
    for plan in plans:
        try:
            documents[plan.group] = plan.verify()
        except (InvalidPlanError, TamperedPlanError) as error:
            observations[plan.group] = Observed(plan, error=str(error))
    pending = [plan for plan in plans if plan.group in documents]
    while pending:
        described = live(plan.group for plan in pending)
        for plan in pending:
            now = _observe(plan, documents[plan.group], described[plan.group])
            observations[plan.group] = _since(observations.get(plan.group), now)
        pending = [
            plan
            for plan in pending
            if plan.group in patiently and not _settled(observations[plan.group])
        ]
        if time.monotonic() >= until:
            break
        if pending:
            time.sleep(CHECK_EVERY_S)
    return [observations[plan.group] for plan in plans]


def check(
    plans: PlanStore,
    groups: Collection[str],
    live: Callable[[Iterable[str]], Mapping[str, LiveGroup | GroupError]],
    *,
    wait_s: float = PATIENCE_S,
    log: Callable[[str], object] = lambda _: None,
) -> list[Observed]:
    """Compare live assignments with the published plans of groups, and store the adherence.

    Parameters
    ----------
    plans
        The store.
    groups
        Groups to check; groups without a published plan are skipped.
    live
        Describes groups as they are now.
    wait_s
        Maximum seconds to wait until groups follow their plans completely. If a group's plan was
        checked in an earlier call, the group is checked once, without waiting.
    log
        Called with a line of text before the check.
    """
    followed = plans.in_state("published", groups=groups)
    new = {group for group, _ in plans.unobserved(followed)}
    patience = f", for up to {wait_s:.0f} s for {plural(len(new), 'new plan')}" if new else ""
    log(f"Checking the adherence of {plural(len(followed), 'group')}{patience}")
    observations = observe(followed, live, patiently=new, until=time.monotonic() + wait_s)
    plans.record_adoptions(
        [
            SeenAdoption(
                group=observed.plan.group,
                version=observed.plan.version,
                observed_at=observed.at,
                planned=observed.adoption.planned,
                as_planned=observed.adoption.as_planned,
            )
            for observed in observations
            if observed.adoption is not None and observed.at is not None
        ]
    )
    return observations


def _observe(plan: StoredPlan, document: PlanDocument, live: LiveGroup | GroupError) -> Observed:
    if isinstance(live, GroupError):
        return Observed(plan, error=str(live))
    owned = {member.name: member.partitions for member in live.members}
    topics = {member.name: member.topics for member in live.members}
    return Observed(plan, live.observed_at, compare(document, owned, topics, live.partition_counts))


def _since(before: Observed | None, now: Observed) -> Observed:
    """Return `now` with two new values: `held_s`, and the `holders` that every check has found."""
    holders = now.adoption.holders if now.adoption else ()
    if before is None or before.at is None or now.at is None:
        return replace(now, holders=holders)
    passed_s = before.held_s + (now.at - before.at).total_seconds()
    return replace(
        now, holders=tuple(name for name in holders if name in before.holders), held_s=passed_s
    )


def _settled(seen: Observed) -> bool:
    """Whether the group needs no further check: it follows its plan, or could not be read."""
    return seen.adoption is None or seen.adoption.as_planned == seen.adoption.planned
