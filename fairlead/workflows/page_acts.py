"""Rollbacks and withdrawals that people requested on pages; the planner carries them out.

Belongs here: carrying out each request once, and storing the answer. Belongs elsewhere: the steps
(`rollback`, `reconciling`), and who may request steps (the database).
"""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from fairlead.domain.groups import LiveGroup
from fairlead.domain.policy import Policy, policy_for
from fairlead.errors import FairleadError, KafkaUnavailableError, StoreUnavailableError
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store import acts
from fairlead.store.plans import PlanStore
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.reconciling import withdraw
from fairlead.workflows.rollback import rollback


def take_up(
    store: PlanStore,
    groups: Collection[str],
    *,
    policies: Sequence[Policy],
    live: Callable[[str], LiveGroup],
    topic: PlanTopic,
    options: PublishOptions,
    now: datetime,
) -> dict[str, str]:
    """Carry out requests from pages; return a mapping from group to the answer.

    Also completes requests that an earlier call left unfinished because of a crash. If the earlier
    call had created the version or withdrawn the plan, this is not done twice.

    Parameters
    ----------
    store
        The plan store.
    groups
        Groups whose requests are carried out.
    policies
        The policies of the settings; they define approval and expiry of a rollback.
    live
        Returns the present description of a group.
    topic, options
        The plan topic, and options of its records.
    now
        The time of new versions, time-zone-aware.

    Raises
    ------
    KafkaUnavailableError, StoreUnavailableError
        A service does not answer. Requests without an answer stay open.
    """
    answers: dict[str, str] = {}
    for act in acts.asked(store.engine, groups):
        group, _ = _about(act)
        try:
            if act.act == "withdraw":
                answer = _withdraw(store, act, topic, options)
            else:
                answer = _roll_back(store, act, policy_for(group, policies), live, now)
        except (KafkaUnavailableError, StoreUnavailableError):
            raise
        except FairleadError as error:
            acts.answer(store.engine, act.id, "refused", str(error))
            answers[group] = f"{act.act} refused: {error}"
        else:
            acts.answer(store.engine, act.id, "done", answer)
            answers[group] = answer
    return answers


def _withdraw(
    store: PlanStore, request: acts.Acted, topic: PlanTopic, options: PublishOptions
) -> str:
    group, version = _about(request)
    if store.get(group, version).state == "published":
        withdraw(
            store, group, topic=topic, options=options, reason=request.reason, actor=request.actor
        )
    return f"version {version} is {store.get(group, version).state}"


def _roll_back(
    store: PlanStore,
    request: acts.Acted,
    policy: Policy,
    live: Callable[[str], LiveGroup],
    now: datetime,
) -> str:
    group, version = _about(request)
    made = store.requested(request.id)
    why = "proposed before"
    if made is None:
        made, approval = rollback(
            store,
            group,
            version,
            policy=policy,
            live=live,
            reason=request.reason,
            now=now,
            actor=request.actor,
            request_id=request.id,
        )
        why = approval.reason
    return f"version {made.version}, which goes back to version {version}, is {made.state}: {why}"


def _about(request: acts.Acted) -> tuple[str, int]:
    assert request.group is not None  # noqa: S101 - acts of the planner are about a version
    assert request.version is not None  # noqa: S101 - the same
    return request.group, request.version
