"""What people asked for on pages and takes Kafka: rollbacks and withdrawals, done by the planner.

Belongs here: doing what was asked, each once, and answering. Does not: the steps (`rollback`,
`reconciling`), who may ask (the database).
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
    """Do what people asked for on pages; returns by group what was answered.

    What a run that died has begun is gone on with: no second version is proposed, and what is
    withdrawn already is answered so.

    Parameters
    ----------
    store
        The plan store.
    groups
        Whose requests are taken up.
    policies
        From the settings: who approves a rollback, and when it expires.
    live
        Describes a group as it is now.
    topic, options
        The plan topic, and how it is written.
    now
        Time-zone-aware.

    Raises
    ------
    KafkaUnavailableError, StoreUnavailableError
        What was not answered stays asked for.
    """
    answers: dict[str, str] = {}
    for act in acts.asked(store.engine, groups):
        assert act.group is not None  # noqa: S101 - it is about a version
        try:
            if act.act == "withdraw":
                said = _withdraw(store, act, topic, options)
            else:
                said = _roll_back(store, act, policy_for(act.group, policies), live, now)
        except (KafkaUnavailableError, StoreUnavailableError):
            raise
        except FairleadError as error:
            acts.answer(store.engine, act.id, "refused", str(error))
            answers[act.group] = f"{act.act} refused: {error}"
        else:
            acts.answer(store.engine, act.id, "done", said)
            answers[act.group] = said
    return answers


def _withdraw(
    store: PlanStore, asked: acts.Acted, topic: PlanTopic, options: PublishOptions
) -> str:
    group, version = _about(asked)
    if store.get(group, version).state == "published":
        withdraw(store, group, topic=topic, options=options, reason=asked.reason, actor=asked.actor)
    return f"version {version} is {store.get(group, version).state}"


def _roll_back(
    store: PlanStore,
    asked: acts.Acted,
    policy: Policy,
    live: Callable[[str], LiveGroup],
    now: datetime,
) -> str:
    group, version = _about(asked)
    made = store.requested(asked.id)
    why = "proposed before"
    if made is None:
        done = rollback(
            store,
            group,
            version,
            policy=policy,
            live=live,
            reason=asked.reason,
            now=now,
            actor=asked.actor,
            request_id=asked.id,
        )
        made, why = done.plan, done.approval.reason
    return f"version {made.version}, which goes back to version {version}, is {made.state}: {why}"


def _about(asked: acts.Acted) -> tuple[str, int]:
    assert asked.group is not None  # noqa: S101 - it is about a version
    assert asked.version is not None  # noqa: S101 - the same
    return asked.group, asked.version
