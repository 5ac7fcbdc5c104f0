"""Publication: a pass of the reconciler on a cluster, for the groups that need a pass.

Belongs here: finding due groups in the database; requests from pages; a second attempt if a broker
died. Belongs elsewhere: the pass (`reconciling`), and when a pass starts (`orchestration`,
`fairlead.surfaces.cli`).
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
#: is dead, new clients in a second attempt find other brokers sooner than the connected clients.
FIRST_ATTEMPT_S: Final = 5.0


def due_groups(plans: PlanStore, options: PublishOptions, now: datetime) -> tuple[list[str], str]:
    """Return the groups that need a pass according to the database, and why other groups wait.

    A group is due if it has an approved plan that is not frozen, a pending record, a lease of which
    a third is over, a plan to withdraw, or a request from a page. After a failed attempt, a plan
    is due again at the time stored with the attempt.
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
        # The failed attempt of an earlier version does not delay a version approved since then.
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
    """Carry out requests from pages, then reconcile groups, on the cluster of the settings.

    If Kafka does not answer, the pass is repeated once with new clients. Therefore a broker that
    has just died costs `FIRST_ATTEMPT_S`, not a whole request time-out. Errors are stored with the
    plans that were not sent.

    Parameters
    ----------
    at_most_s
        Seconds. Time-out for requests to brokers, unless the settings have a shorter one.

    Returns
    -------
    A mapping from groups to the answers to their requests from pages, and the steps of the pass.
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
    """Return requests to withdraw first plans that caused a regression, unless a person decides."""
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
    """Store the error of a pass with the plans that it did not send."""
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
