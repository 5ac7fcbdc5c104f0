"""A pass: whatever groups are to be told is told, and topic and database agree afterwards.

Belongs here: the order of settling, publishing, mending and telling again. Does not: each of them
(`publication`, `reconciliation`, `lease`).
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from fairlead.domain.records import StoredPlan
from fairlead.store.plans import PlanStore
from fairlead.workflows.delivery import Terms, Topic
from fairlead.workflows.lease import due, refresh
from fairlead.workflows.publication import Live, Published, publish_all, settle_all
from fairlead.workflows.reconciliation import Difference, differences, mend


@dataclass(frozen=True)
class Pass:
    """What came of a pass.

    Parameters
    ----------
    results
        Of plans that were on their way or approved, one each.
    found
        Where the topic said something else than the database; it was said again.
    untold
        Groups that were not told of their plan again, with the reason.
    current
        The plans of the groups that are proposed or published now.
    """

    results: Sequence[Published]
    found: Sequence[Difference]
    untold: Sequence[tuple[str, str]]
    current: Sequence[StoredPlan]


def tell_groups(
    plans: PlanStore,
    groups: Collection[str],
    *,
    live: Live,
    topic: Topic,
    terms: Terms,
    now: datetime,
    at_once: Callable[[Collection[str]], None] = lambda _: None,
) -> Pass:
    """Settle what a crash left, publish what is approved, mend differences, extend leases.

    Parameters
    ----------
    plans
        The store.
    groups
        That this is about.
    live
        Describes groups as they are now.
    topic, terms
        The plan topic, and how it is written.
    now
        Time-zone-aware.
    at_once
        Called with the groups that got a plan, if any did, before topic and database are compared.
    """
    results = [
        *settle_all(plans, groups, live=live, topic=topic, terms=terms, now=now),
        *publish_all(
            plans, plans.approved_unpublished(groups), live=live, topic=topic, terms=terms
        ),
    ]
    if published := sorted({one.group for one in results if one.position is not None}):
        at_once(published)
    found = differences(plans, groups, topic=topic, verifier=terms.verifier())
    untold = [
        (done.intent.group, done.reason)
        for done in mend(plans, found, topic=topic, terms=terms, now=now)
        if done.position is None
    ]
    again = set(due(plans, terms, now)) & set(groups)
    followed = plans.in_state("published", groups=again)
    untold += refresh(plans, followed, topic=topic, terms=terms, now=now)
    return Pass(results, found, untold, plans.in_state("proposed", "published", groups=groups))
