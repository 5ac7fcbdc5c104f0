"""Publication: the approved bytes, and no others, to the plan topic, if they still fit the group.

Belongs here: what is verified before a plan may be sent. Does not: the order of intents, records
and confirmations (`delivery`), Kafka's producer (`fairlead.kafka`), the plan's states
(`fairlead.store`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from assignors.verifier import violations
from fairlead.domain.as_problem import assignment_of, planned, problem_of
from fairlead.domain.basis import differences_from
from fairlead.domain.groups import LiveGroup
from fairlead.domain.records import StoredPlan
from fairlead.errors import GroupError, InvalidPlanError, TamperedPlanError
from fairlead.kafka.descriptions import absent, passing
from fairlead.store.brakes import brake_on
from fairlead.store.outbox_entries import PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.wire.document import PlanDocument
from fairlead.workflows.delivery import (
    Delivered,
    PublishOptions,
    Topic,
    by_partition,
    deliver,
    settle,
)

#: Groups described at once: few enough that none has changed much when its turn comes.
AT_ONCE: Final = 100

#: Describes groups as they are now.
Live = Callable[[Iterable[str]], Mapping[str, LiveGroup | GroupError]]


@dataclass(frozen=True)
class Objection:
    """Why a plan may not be sent.

    Parameters
    ----------
    reason
        In words.
    ends
        Whether the plan is stale by it; False: it stays as it is, and is tried again.
    passing
        Whether it ends by itself.
    """

    reason: str
    ends: bool = False
    passing: bool = False


@dataclass(frozen=True)
class Published:
    """What became of a group's approved plan.

    Parameters
    ----------
    group, version
        The plan.
    position
        Partition and offset in the plan topic; None: it was refused, or not sent.
    reason
        Why it was refused, or where it is.
    waits
        Whether it was not sent, and stays as it is: approved, or on its way.
    passing
        Whether the reason is one that ends by itself, as a rebalance.
    """

    group: str
    version: int
    position: tuple[int, int] | None
    reason: str
    waits: bool = False
    passing: bool = False

    @classmethod
    def of(cls, delivered: Delivered) -> "Published":
        """Return what became of a plan that was on its way."""
        plan = delivered.intent.plan
        return cls(plan.group, plan.version, delivered.position, delivered.reason)


def publish_all(
    store: PlanStore,
    waiting: Sequence[StoredPlan],
    *,
    live: Live,
    topic: Topic,
    options: PublishOptions,
    now: datetime | None = None,
) -> Iterator[Published]:
    """Publish the approved plans of groups; `AT_ONCE` groups are described together just before.

    Everything is verified again, whatever ran before: the bytes are those that were approved, they
    give every partition exactly one subscribed owner, the plan has not expired, and the group still
    is what the plan was made for. What is wrong with one group is why its plan is not published,
    and concerns no other. What a brake holds stays approved. What an earlier run has left on its
    way is for `settle_all`.

    Parameters
    ----------
    waiting
        Approved plans, one a group: what still waits is looked at again when its turn comes.
    live
        Describes groups as they are now.
    store, topic
        Where plans are, and where they go.
    options
        How long they hold, and what signs them.
    now
        What expiry is held against, and when leases begin; None: the time of each turn.

    Raises
    ------
    ConfigurationError
        The topic cannot be written.
    KafkaUnavailableError
        Kafka does not answer, or another publisher took over; what is not published yet stays
        approved or on its way.
    """
    brakes = store.brakes()
    held = {plan.group: brake for plan in waiting if (brake := brake_on(plan, brakes))}
    for plan in waiting:
        if plan.group in held:
            yield _not_sent(plan, Objection(str(held[plan.group])))
    for plans_here in by_partition(
        topic, [plan for plan in waiting if plan.group not in held]
    ).values():
        for first in range(0, len(plans_here), AT_ONCE):
            yield from _publish(
                store,
                plans_here[first : first + AT_ONCE],
                live,
                topic,
                options,
                now or datetime.now(UTC),
            )


def settle_all(
    store: PlanStore,
    groups: Iterable[str] | None,
    *,
    live: Live,
    topic: Topic,
    options: PublishOptions,
    now: datetime,
) -> Iterator[Published]:
    """Finish or withdraw what an earlier run has left on its way; see `delivery.settle`.

    Parameters
    ----------
    groups
        Whose; None: everybody's.
    store, live, topic, options, now
        As for `publish_all`.
    """
    outbox = store.outbox()

    unknown: list[Published] = []

    def objections(plans: Sequence[StoredPlan]) -> dict[str, str]:
        found = live(plan.group for plan in plans) if plans else {}
        reasons: dict[str, str] = {}
        for plan in plans:
            try:
                objection = _objection(plan, found[plan.group], now)
            except (InvalidPlanError, TamperedPlanError) as error:
                reasons[plan.group] = str(error)
                continue
            if objection is None or objection.ends:
                reasons[plan.group] = "" if objection is None else objection.reason
            else:  # the group is not known now: the plan stays on its way
                unknown.append(_not_sent(plan, objection))
        return reasons

    left = outbox.outstanding(groups)
    for done in settle(outbox, topic, left, options, objections=objections, now=now):
        yield Published.of(done)
    yield from unknown


def _publish(  # noqa: PLR0917 - the parts of one step
    store: PlanStore,
    plans: Sequence[StoredPlan],
    live: Live,
    topic: Topic,
    options: PublishOptions,
    now: datetime,
) -> Iterator[Published]:
    found = live(plan.group for plan in plans)
    wanted = []
    for plan in plans:
        try:
            objection = _objection(plan, found[plan.group], now)
        except (InvalidPlanError, TamperedPlanError) as error:
            objection = Objection(str(error))
        if objection is None:
            wanted.append(PublishRequest(plan.group, plan.version, lease_until=now + options.lease))
        elif not objection.ends:
            yield _not_sent(plan, objection)
        elif store.mark_stale(plan, reason=objection.reason):
            yield Published(plan.group, plan.version, None, objection.reason)
    for done in deliver(store.outbox(), topic, wanted, options):
        yield Published.of(done)


def _not_sent(plan: StoredPlan, objection: Objection) -> Published:
    """Return that a plan stays as it is, and why."""
    return Published(
        plan.group, plan.version, None, objection.reason, waits=True, passing=objection.passing
    )


def _objection(plan: StoredPlan, live: LiveGroup | GroupError, now: datetime) -> Objection | None:
    """Return why a plan may not be sent; None: it may.

    Raises
    ------
    InvalidPlanError, TamperedPlanError
        The plan must not be sent, whatever the group is.
    """
    document = plan.verify()
    _verify_assignment(document)
    if plan.expired(now):
        return Objection("it has expired", ends=True)
    if isinstance(live, GroupError):
        if absent(live):
            return Objection("the group does not exist any more", ends=True)
        return Objection(str(live), passing=passing(live))
    differences = "; ".join(differences_from(document, live))
    return Objection(differences, ends=True) if differences else None


def _verify_assignment(plan: PlanDocument) -> None:
    problem = problem_of(plan, planned(plan))
    broken = violations(problem, assignment_of(problem, planned(plan)))
    if broken:
        raise InvalidPlanError(f"group {plan.group}: version {plan.version}: {'; '.join(broken)}")
