"""Leases: a published plan holds for a while, and is told again before that is over.

Belongs here: when a plan is told again. Does not: how anything is sent (`delivery`), nor what
followers make of it (`fairlead.followers.core.plan_cache`).

Telling a plan again is no new version: the bytes are the same, nobody approves them anew, no
cooldown begins, and nobody rebalances. A planner that is down tells nothing: its plans lapse.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from fairlead.domain.records import StoredPlan
from fairlead.errors import InvalidPlanError, TamperedPlanError
from fairlead.store.outbox_entries import PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.workflows.delivery import PublishOptions, Topic, deliver


def due(store: PlanStore, options: PublishOptions, now: datetime) -> list[str]:
    """Return the groups whose plan has used up a third of its lease."""
    return store.told_before(now + options.lease - renewed_after(options.lease))


def renewed_after(lease: timedelta) -> timedelta:
    """Return how much of a lease may be used up: so much that two attempts at renewal may fail.

    Examples
    --------
    >>> renewed_after(timedelta(hours=6))
    datetime.timedelta(seconds=7200)
    """
    return lease / 3


def refresh(
    store: PlanStore,
    plans: Sequence[StoredPlan],
    *,
    topic: Topic,
    options: PublishOptions,
    now: datetime,
) -> Iterator[tuple[str, str]]:
    """Tell groups again of the plans they follow, with leases that begin now.

    Whether a plan still is the best is not asked: while a better one waits, for a person say, its
    consumers had better not fall back.

    Parameters
    ----------
    plans
        Published, of groups that are `due`.
    store, topic, options
        As for `publication.publish_all`.
    now
        When the leases begin.

    Returns
    -------
    Groups whose plan could not be told again, and why.

    Raises
    ------
    KafkaUnavailableError
        Kafka does not answer; the groups that are left are due still.
    """
    wanted = []
    for plan in plans:
        try:
            plan.verify()
        except (InvalidPlanError, TamperedPlanError) as error:
            yield plan.group, str(error)
        else:
            wanted.append(PublishRequest(plan.group, plan.version, lease_until=now + options.lease))
    for done in deliver(store.outbox(), topic, wanted, options):
        if done.position is None:
            yield done.intent.group, done.reason
