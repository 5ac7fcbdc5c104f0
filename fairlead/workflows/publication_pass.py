"""The publication pass: what is approved is sent, and topic and database agree afterwards.

Belongs here: the order of settling, publishing, following up, mending and renewing, and when what
was not sent is tried again. Does not: each of these steps (`publication`, `following`,
`reconciliation`, `lease`, `retirement`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from fairlead.domain.policy import Policy
from fairlead.domain.records import StoredPlan
from fairlead.errors import ConfigurationError, GroupError, KafkaUnavailableError
from fairlead.kafka.descriptions import absent
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store.attempts import Attempt
from fairlead.store.hindsight import regrets
from fairlead.store.outbox_entries import PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.workflows.delivery import PublishOptions, Topic, deliver
from fairlead.workflows.following import follow
from fairlead.workflows.lease import due, refresh, renewed_after
from fairlead.workflows.nudging import BrokerAdoption
from fairlead.workflows.page_acts import take_up
from fairlead.workflows.publication import Live, Published, publish_all, settle_all
from fairlead.workflows.reconciliation import Difference, differences, mend

#: When a plan that was not sent is tried again: a reason that ends by itself, and any other one.
SOON: Final = timedelta(seconds=30)
LATER: Final = timedelta(minutes=10)
_HELD: Final = "somebody else's open transaction is at the group, or another run publishes it"

#: Has brokers follow the published plans of groups.
FollowUp = Callable[[Collection[str]], Sequence[BrokerAdoption]]


@dataclass(frozen=True)
class Pass:
    """What came of a publication pass.

    Parameters
    ----------
    results
        Of plans that were on their way or approved, one each.
    found
        Where the topic said something else than the database; it was said again.
    untold
        Groups whose lease was not renewed, with the reason.
    retired
        Plans that were taken back: their groups do not exist any more, or they made them worse.
    followed
        What became of the groups that brokers assign.
    current
        The plans of the groups that are proposed, approved or published now.
    """

    results: Sequence[Published]
    found: Sequence[Difference]
    untold: Sequence[tuple[str, str]]
    retired: Sequence[StoredPlan]
    followed: Sequence[BrokerAdoption]
    current: Sequence[StoredPlan]


def publish_groups(
    plans: PlanStore,
    groups: Collection[str],
    *,
    policies: Sequence[Policy],
    open_gateway: Callable[[], AbstractContextManager[KafkaGateway]],
    open_topic: Callable[[], AbstractContextManager[PlanTopic]],
) -> tuple[dict[str, str], Pass]:
    """Do what people asked for on pages, then a publication pass, on a real cluster.

    A rollback that was asked for may then be approved.

    Returns
    -------
    What was answered on pages, by group; and what came of the pass.
    """
    with failures_recorded(plans, groups), open_gateway() as gateway, open_topic() as topic:
        # Before there is a plan: followers ask ever more seldom for a topic that does not exist,
        # and what is wrong with it is to be known before anybody approves.
        topic.ensure()
        options = PublishOptions.of(gateway.settings)
        answers = take_up(
            plans,
            groups,
            policies=policies,
            live=gateway.live_group,
            topic=topic,
            options=options,
            now=datetime.now(UTC),
        )
        return answers, publication_pass(
            plans,
            groups,
            live=gateway.live_groups,
            topic=topic,
            options=options,
            now=datetime.now(UTC),
            follow_up=lambda followers: follow(
                gateway,
                gateway.settings,
                followers,
                lambda assigned: plans.in_state("published", groups=assigned),
            ),
        )


def publication_pass(
    plans: PlanStore,
    groups: Collection[str],
    *,
    live: Live,
    topic: Topic,
    options: PublishOptions,
    now: datetime,
    follow_up: FollowUp = lambda _: (),
) -> Pass:
    """Settle what a crash left, publish what is approved, mend differences, renew leases.

    Why a plan is not sent is stored with it, and when it is tried again.

    Parameters
    ----------
    plans
        The store.
    groups
        That this is about.
    live
        Describes groups as they are now.
    topic, options
        The plan topic, and how it is written.
    now
        Time-zone-aware.
    follow_up
        Called with the groups that got a plan, before topic and database are compared, and with
        the others at the end.
    """
    groups = [*groups, *_gone_elsewhere(plans, set(groups), live)]
    waiting = plans.approved_unpublished(groups)
    results = [
        *settle_all(plans, groups, live=live, topic=topic, options=options, now=now),
        *publish_all(plans, waiting, live=live, topic=topic, options=options),
    ]
    known = {result.group for result in results}
    left = [plan.group for plan in waiting if plan.group not in known]
    results += [
        Published(plan.group, plan.version, None, _HELD, waits=True, passing=True)
        for plan in (plans.approved_unpublished(left) if left else ())
    ]
    published = sorted({result.group for result in results if result.position is not None})
    followed = list(follow_up(published)) if published else []
    found = differences(plans, groups, topic=topic, verifier=options.verifier())
    untold = [
        (done.intent.group, done.reason)
        for done in mend(plans, found, topic=topic, options=options, now=now)
        if done.position is None
    ]
    followers, gone = _told_apart(plans, groups, live, options, now)
    retired = _retire(plans, gone, topic, options, now)
    retired += _taken_back(plans, groups, topic, options)
    ended = {plan.group for plan in retired}
    without = [plan for plan in gone if plan.group not in ended and plan.group in set(groups)]
    untold += refresh(plans, followers, topic=topic, options=options, now=now)
    untold += [(plan.group, "the group does not exist any more") for plan in without]
    plans.record_attempts(
        [
            *(_attempt(result) for result in results if result.waits),
            *(_unrenewed(plan, options, now) for plan in without),
        ]
    )
    if others := [group for group in groups if group not in set(published)]:
        followed += follow_up(others)
    current = plans.in_state("proposed", "approved", "published", groups=groups)
    return Pass(results, found, untold, retired, followed, current)


@contextmanager
def failures_recorded(plans: PlanStore, groups: Collection[str]) -> Iterator[None]:
    """Store with the plans that wait why a pass that ends with an error did not send them."""
    try:
        yield
    except (ConfigurationError, KafkaUnavailableError) as error:
        passing = isinstance(error, KafkaUnavailableError)
        plans.record_attempts(
            [
                _attempt(Published(plan.group, plan.version, None, str(error), passing=passing))
                for plan in plans.in_state("approved", "sending", groups=groups)
            ]
        )
        raise


def _attempt(result: Published) -> Attempt:
    at = datetime.now(UTC)
    again_at = at + (SOON if result.passing else LATER)
    return Attempt(result.group, result.version, at, result.reason, again_at)


def _unrenewed(plan: StoredPlan, options: PublishOptions, now: datetime) -> Attempt:
    """Return that a lease was not renewed: it is tried again while it lasts, and at its end."""
    again_at = now + renewed_after(options.lease) / 2
    if plan.lease_until is not None:
        again_at = min(again_at, plan.lease_until)
    why = (
        "the group does not exist any more: its plan is retired when its lease is over, if the "
        "group has not come back by then"
    )
    return Attempt(plan.group, plan.version, datetime.now(UTC), why, max(again_at, now + LATER))


def _gone_elsewhere(plans: PlanStore, groups: Collection[str], live: Live) -> list[str]:
    """Return the groups beyond these that do not exist, and whose plans wait to be published.

    Dagster has no partition any more of a group that is gone: no run is about it.
    """
    waiting = {plan.group for plan in plans.in_state("approved", "sending")}.difference(groups)
    found = live(waiting) if waiting else {}
    return sorted(group for group in found if _is_absent(found[group]))


def _told_apart(
    plans: PlanStore, groups: Iterable[str], live: Live, options: PublishOptions, now: datetime
) -> tuple[list[StoredPlan], list[StoredPlan]]:
    """Return the plans whose leases are to be renewed, and those whose groups do not exist.

    Leases that are over are looked at whoever the pass is about: Dagster has no partition any more
    of a group that is gone.
    """
    over = set(plans.told_before(now))
    mine = set(due(plans, options, now)) & set(groups)
    if not over | mine:
        return [], []
    followed = plans.in_state("published", groups=over | mine)
    found = live(plan.group for plan in followed)
    gone = [plan for plan in followed if _is_absent(found[plan.group])]
    names = {plan.group for plan in gone}
    return [plan for plan in followed if plan.group in mine - names], gone


def _is_absent(found: object) -> bool:
    return isinstance(found, GroupError) and absent(found)


def _taken_back(
    plans: PlanStore, groups: Collection[str], topic: Topic, options: PublishOptions
) -> list[StoredPlan]:
    """Take back first plans that made it worse, where that takes no person."""
    first = [
        regret
        for regret in regrets(plans.engine)
        if regret.automatic and regret.back_to is None and regret.group in set(groups)
    ]
    wanted = [
        PublishRequest(
            result.group, result.version, "retired", reason=f"it made it worse: {result.evidence}"
        )
        for result in first
    ]
    done = deliver(plans.outbox(), topic, wanted, options) if wanted else []
    return [
        plans.get(result.intent.group, result.intent.plan.version)
        for result in done
        if result.position is not None
    ]


def _retire(
    plans: PlanStore,
    gone: Sequence[StoredPlan],
    topic: Topic,
    options: PublishOptions,
    now: datetime,
) -> list[StoredPlan]:
    """Take back the plans of groups that do not exist, where nothing renewed the lease till now."""
    over = [plan for plan in gone if plan.lease_until is not None and plan.lease_until <= now]
    why = f"the group does not exist, and its lease of {options.lease} is over"
    wanted = [PublishRequest(plan.group, plan.version, "retired", reason=why) for plan in over]
    sent = {
        done.intent.group
        for done in deliver(plans.outbox(), topic, wanted, options)
        if done.position is not None
    }
    return [plan for plan in over if plan.group in sent]
