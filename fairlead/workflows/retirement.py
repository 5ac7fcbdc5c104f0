"""Retirement: a record that takes the plan back sends the group to its fallback.

Belongs here: which plan is taken back. Does not: the order of intent, record and confirmation
(`delivery`), the plan's states (`fairlead.store`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fairlead.domain.records import StoredPlan
from fairlead.errors import PlanStateError, StalePlanError
from fairlead.store.outbox_entries import PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.workflows.delivery import PublishOptions, Topic, deliver, settle


@dataclass(frozen=True)
class Retired:
    """A plan that nobody is to follow any more.

    Parameters
    ----------
    group, version
        The plan.
    position
        Partition and offset of the record in the plan topic that says so.
    """

    group: str
    version: int
    position: tuple[int, int]


def retire(
    store: PlanStore,
    group: str,
    *,
    topic: Topic,
    options: PublishOptions,
    reason: str,
    actor: str | None = None,
) -> Retired:
    """Take a group's published plan back: its consumers return to their fallback.

    Plans of the group that wait for approval or publication end as well. The next planning run
    proposes anew where the policy's cooldown is over: who wants the group left alone excludes it
    from discovery. A crash on the way leaves it on its way, and the next run finishes it.

    Parameters
    ----------
    store
        The plan store.
    group
        The consumer group.
    topic
        The plan topic.
    options
        What signs the record.
    reason
        Why; stands in the plan's history.
    actor
        Who asks for it; None: the database's session user.

    Raises
    ------
    PlanStateError
        The group has no published plan, or an earlier record of it is on its way still.
    KafkaUnavailableError
        Kafka does not answer; the plan stays published until the next run.
    """
    outbox = store.outbox()
    left = [intent for intent in outbox.outstanding([group]) if intent.kind == "retired"]
    now = datetime.now(UTC)
    for done in settle(outbox, topic, left, options, objections=_nothing, now=now):
        if done.position is not None:  # asked for before, by somebody who died
            return Retired(group, done.intent.plan.version, done.position)
    plan = store.published(group)
    if plan is None:
        raise PlanStateError(f"group {group} has no published plan to retire")
    wanted = PublishRequest(group, plan.version, "retired", reason=reason, actor=actor)
    for done in deliver(outbox, topic, [wanted], options):
        if done.position is None:
            raise StalePlanError(f"group {group}: version {plan.version}: {done.reason}")
        return Retired(group, plan.version, done.position)
    raise PlanStateError(
        f"group {group}: another version is being published or retired; the next run settles it"
    )


def _nothing(_: Sequence[StoredPlan]) -> dict[str, str]:
    """Say nothing of plans that are on their way: they are for the next publication."""
    return {}
