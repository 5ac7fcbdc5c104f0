"""Publication: make the plan topic agree with the database, for the groups that need it.

Belongs here: finding these groups in the database; requests from pages; a second attempt if a
broker died. Belongs elsewhere: sending records (`reconciling`), and deciding when to send them
(`orchestration`, `fairlead.surfaces.cli`).
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from typing import Final

from fairlead.domain.reconciliation import renewed_after
from fairlead.errors import ConfigurationError, KafkaUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from fairlead.store import acts
from fairlead.store.attempts import Attempt, last_attempts, record_attempts
from fairlead.store.freezes import freeze_on, read_freezes
from fairlead.store.outbox_entries import PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.store.regressions import open_regressions
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.page_acts import take_up
from fairlead.workflows.reconciling import LATER, SOON, StepResult, reconcile

log = logging.getLogger(__name__)

#: Seconds. Time-out of a request in the first attempt: a running broker answers sooner. If a broker
#: has died, the second attempt uses new clients, because they find another broker sooner.
FIRST_ATTEMPT_S: Final = 5.0


def due_groups(plans: PlanStore, options: PublishOptions, now: datetime) -> tuple[list[str], str]:
    """Return the groups that have something to send, and why other groups wait.

    A group has something to send if one of these is in the database: an approved plan that is not
    frozen, an unfinished record, a lease of which a third is over, a plan to withdraw, or a request
    from a page. After a failed attempt, the group waits until the time stored with the attempt.
    """
    freezes = read_freezes(plans.engine)
    approved = {plan.group: plan for plan in plans.in_state("approved")}
    frozen = {
        group: freeze for group, plan in approved.items() if (freeze := freeze_on(plan, freezes))
    }
    due = approved.keys() - frozen.keys()
    due |= set(plans.leases_ending_by(now + options.lease - renewed_after(options.lease)))
    due |= {entry.group for entry in plans.outbox().outstanding()}
    due |= {request.group for request in withdrawals_of_regressions(plans)}
    later = [
        attempt
        for attempt in last_attempts(plans.engine, due).values()
        if attempt.again_at > now
        # If another version was approved since the failed attempt, the group need not wait.
        and (attempt.group not in approved or approved[attempt.group].version == attempt.version)
    ]
    requested = {act.group for act in acts.asked(plans.engine) if act.group is not None}
    why = [
        f"{attempt.group}: {attempt.reason}, tried again at "
        f"{attempt.again_at.astimezone(UTC):%H:%M:%S} UTC"
        for attempt in sorted(later, key=attrgetter("group"))
        if attempt.group not in requested
    ]
    groups = sorted(requested | due - {attempt.group for attempt in later})
    return groups, ". ".join([*why, *map(str, {*frozen.values()})])


def publish_groups(
    plans: PlanStore, groups: Collection[str], settings: Settings, *, at_most_s: float | None = None
) -> tuple[dict[str, str], list[StepResult]]:
    """Carry out requests from pages, then make the plan topic agree with the database.

    If Kafka does not answer within `FIRST_ATTEMPT_S`, everything is tried once more with new
    clients, because a single broker may have died. If that fails, too, the error is stored with the
    plans that were not sent.

    Parameters
    ----------
    at_most_s
        Seconds. Time-out for requests to brokers, unless the settings have a shorter one.

    Returns
    -------
    Two results: a mapping from group to the answer to its request from a page, and the steps that
    were carried out.
    """
    patience_s = settings.kafka.request_timeout_s
    if at_most_s is not None:
        patience_s = min(at_most_s, patience_s)
    answers: dict[str, str] = {}
    results: list[StepResult] = []

    def attempt(request_timeout_s: float) -> None:
        kafka = settings.kafka.model_copy(update={"request_timeout_s": request_timeout_s})
        options, now = PublishOptions.of(kafka), datetime.now(UTC)
        with KafkaGateway(kafka) as gateway, PlanTopic(kafka) as topic:
            # Create the topic even if there is no plan yet. Otherwise consumers would look for the
            # topic at growing intervals, and errors would appear only after a plan is approved.
            topic.ensure()
            answers.update(
                take_up(
                    plans,
                    groups,
                    policies=settings.policies,
                    live=gateway.live_group,
                    topic=topic,
                    options=options,
                    now=now,
                )
            )
            results.extend(
                reconcile(
                    plans,
                    groups,
                    live=gateway.live_groups,
                    topic=topic,
                    options=options,
                    now=now,
                    withdrawals=withdrawals_of_regressions(plans),
                )
            )

    with failures_recorded(plans, groups):
        try:
            attempt(min(FIRST_ATTEMPT_S, patience_s))
        except KafkaUnavailableError as error:
            log.warning("Trying once more with new clients: %s", error)
            attempt(patience_s)
    return answers, results


def withdrawals_of_regressions(plans: PlanStore) -> Sequence[PublishRequest]:
    """Return requests to withdraw plans that made their groups worse, if none can replace them.

    If the group's policy leaves decisions to a person, nothing is requested.
    """
    return [
        PublishRequest(
            regression.group,
            regression.version,
            "withdrawn",
            reason=f"it caused a regression: {regression.evidence}",
        )
        for regression in open_regressions(plans.engine)
        if regression.automatic and regression.back_to is None
    ]


@contextmanager
def failures_recorded(plans: PlanStore, groups: Collection[str]) -> Iterator[None]:
    """If the block fails because of Kafka, store the error with the plans that were not sent."""
    try:
        yield
    except (ConfigurationError, KafkaUnavailableError) as error:
        at = datetime.now(UTC)
        again_at = at + (SOON if isinstance(error, KafkaUnavailableError) else LATER)
        record_attempts(
            plans.engine,
            [
                Attempt(plan.group, plan.version, at, str(error), again_at)
                for plan in plans.in_state("approved", "sending", groups=groups)
            ],
        )
        raise
