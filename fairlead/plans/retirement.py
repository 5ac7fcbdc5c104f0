"""Retirement: a record that takes the plan back sends the group to its fallback.

Belongs here: the order of sending and recording. Does not: Kafka's producer
(`fairlead.kafka.plan_topic`), the plan's states (`fairlead.store`).
"""

from dataclasses import dataclass

from fairlead.plans.publication import Sender
from fairlead.plans.record import plan_headers, retired_value
from fairlead.plans.signing import Signer
from fairlead.store.plans import PlanStore
from fairlead.store.turns import Sent


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
    sender: Sender,
    reason: str,
    signer: Signer | None = None,
    actor: str | None = None,
) -> Retired:
    """Take a group's published plan back: its consumers return to their fallback.

    Plans of the group that wait for approval or publication end as well. The next planning run
    proposes anew where the policy's cooldown is over: who wants the group left alone excludes it
    from discovery. A crash after the send and before the record of it leaves the plan published;
    the next call sends again.

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
    signer
        Signs the record; None: it is not signed.

    Raises
    ------
    PlanStateError
        The group has no published plan.
    KafkaUnavailableError
        Kafka does not answer; the plan stays published.
    """
    with store.retirement(group) as turn:
        version, epoch = turn.plan.version, turn.epoch()
        value = retired_value(group, version)
        headers = plan_headers(
            value,
            group=group,
            version=version,
            origin=sender.origin,
            epoch=epoch,
            lease_until=None,
            kind="retired",
            signer=signer,
        )
        partition, offset = sender.publish(group, value, headers)
        turn.mark_retired(
            Sent(epoch, None, sender.name, partition, offset),
            reason=f"{reason} (said in {sender.name}-{partition} at offset {offset})",
            actor=actor,
        )
    return Retired(group, turn.plan.version, (partition, offset))
