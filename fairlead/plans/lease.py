"""Leases: a published plan holds for a while, and is told again before that is over.

Belongs here: when a plan is told again. Does not: how anything is sent (`publication`), nor what
followers make of it (`fairlead.followers.plan_cache`).

Telling a plan again is no new version: the bytes are the same, nobody approves them anew, no
cooldown begins, and nobody rebalances. A planner that is down tells nothing: its plans lapse.
"""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from fairlead.errors import TamperedPlanError
from fairlead.plans.publication import Sender, Terms
from fairlead.store.plans import PlanStore
from fairlead.store.turns import Sent


def due(store: PlanStore, terms: Terms, now: datetime) -> list[str]:
    """Return the groups whose plan has used up a third of its lease, or was never given one."""
    return store.told_before(now + terms.lease - renewed_after(terms.lease))


def renewed_after(lease: timedelta) -> timedelta:
    """Return how much of a lease may be used up: so much that two attempts at renewal may fail.

    Examples
    --------
    >>> renewed_after(timedelta(hours=6))
    datetime.timedelta(seconds=7200)
    """
    return lease / 3


def refresh(
    store: PlanStore, groups: Collection[str], *, sender: Sender, terms: Terms, now: datetime
) -> Iterator[tuple[str, str]]:
    """Tell groups again of the plans they follow, with leases that begin now.

    Whether a plan still is the best is not asked: while a better one waits, for a person say, its
    consumers had better not fall back.

    Parameters
    ----------
    groups
        Those that are `due`.
    sender, terms
        As for `publication.publish`.
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
    for group in groups:
        with store.refreshment(group) as turn:
            if turn.plan is None:
                continue
            try:
                turn.plan.verify()
            except TamperedPlanError as error:
                yield group, str(error)
                continue
            epoch, until = turn.epoch(), now + terms.lease
            partition, offset = sender.publish(
                group,
                turn.plan.document,
                terms.headers(turn.plan, sender.origin, epoch=epoch, lease_until=until),
            )
            turn.mark_told(Sent(epoch, until, sender.name, partition, offset))
