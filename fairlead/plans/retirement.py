"""Retirement: a tombstone sends the group back to its fallback.

Belongs here: the order of sending and recording. Does not: Kafka's producer
(`fairlead.kafka.plan_topic`), the plan's states (`fairlead.store`).
"""

from dataclasses import dataclass

from fairlead.plans.publication import Sender
from fairlead.store.plans import PlanStore


@dataclass(frozen=True)
class Retired:
    """A plan that nobody is to follow any more.

    Parameters
    ----------
    group, version
        The plan.
    position
        Partition and offset of the tombstone in the plan topic.
    """

    group: str
    version: int
    position: tuple[int, int]


def retire(
    store: PlanStore, group: str, *, sender: Sender, reason: str, actor: str | None = None
) -> Retired:
    """Take a group's published plan back: its consumers return to their fallback.

    Plans of the group that wait for approval or publication end as well. The next planning run
    proposes anew where the policy's cooldown is over: who wants the group left alone excludes it
    from discovery. A crash after the tombstone and before the record of it leaves the plan
    published; the next call sends the tombstone again.

    Parameters
    ----------
    store
        The plan store; the group stays locked meanwhile.
    group
        The consumer group.
    sender
        The plan topic.
    reason
        Why; stands in the plan's history.
    actor
        Who asks for it; None: the database's session user.

    Raises
    ------
    PlanStateError
        The group has no published plan.
    KafkaUnavailableError
        Kafka does not answer; the plan stays published.
    """
    with store.retirement(group) as turn:
        partition, offset = sender.publish(group, None, [])
        turn.mark_retired(
            reason=f"{reason} (tombstone in {sender.name}-{partition} at offset {offset})",
            actor=actor,
        )
    return Retired(group, turn.plan.version, (partition, offset))
