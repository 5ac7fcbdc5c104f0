"""Reconciliation: what the plan topic says of each group, held against what the database says.

Belongs here: finding differences, and what mends them. Does not: what a crash left on its way,
which is settled before (`delivery.settle`).

Nobody but the planner should write to the topic; where somebody does, or where the topic was made
anew or grew, the newest record of a group is not what it should be. It is said again; where what
stands there goes before it, in a new epoch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fairlead.domain.records import StoredPlan
from fairlead.kafka.plan_topic import Record
from fairlead.store.outbox_entries import PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.store.published_records import PublishedRecord
from fairlead.wire.record import Origin
from fairlead.wire.signing import Verifier
from fairlead.workflows.delivery import (
    Delivered,
    PublishOptions,
    Topic,
    by_partition,
    deliver,
    told,
)

#: Leases are told to the millisecond.
_EXACT: Final = timedelta(seconds=1)


@dataclass(frozen=True)
class Difference:
    """A group of which the topic does not say what the database does.

    Parameters
    ----------
    plan
        The version that is published or retired.
    what
        What is the matter.
    beyond
        The epoch that stands in the way; None: none does.
    """

    plan: StoredPlan
    what: str
    beyond: int | None = None

    @property
    def group(self) -> str:
        """Whose."""
        return self.plan.group


def differences(
    store: PlanStore,
    groups: Iterable[str] | None,
    *,
    topic: Topic,
    verifier: Verifier | None,
) -> list[Difference]:
    """Compare the newest record of groups with what is published or was retired last.

    Groups with something on its way are left out: what stands there is for `delivery.settle`.

    Parameters
    ----------
    groups
        Whose; None: everybody's.
    verifier
        What tells the planner's own records; None: they are not signed.

    Raises
    ------
    ConfigurationError
        The topic does not exist.
    KafkaUnavailableError, StoreUnavailableError
        Somebody does not answer.
    """
    outbox = store.outbox()
    busy = {intent.group for intent in outbox.outstanding(groups)}
    known = [plan for plan in outbox.followed(groups) if plan.group not in busy]
    last = outbox.told([plan.group for plan in known])
    found: list[Difference] = []
    for partition, plans in by_partition(topic, known).items():
        newest = topic.newest(partition, [plan.group for plan in plans])
        for plan in plans:
            *_, sent = last[plan.group]
            record = newest.get(plan.group)
            if difference := _compare(plan, sent, record, topic.origin, verifier):
                found.append(difference)
    return found


def _compare(
    plan: StoredPlan,
    sent: PublishedRecord,
    record: Record | None,
    origin: Origin,
    verifier: Verifier | None,
) -> Difference | None:
    epoch, until = sent.epoch, sent.lease_until
    said = None if record is None else told(record, origin, verifier)
    heeded = verifier is None  # tombstones are, where nothing needs to be signed
    if record is not None and heeded and record.tombstone > min(record.began, sent.offset):
        # Followers have heeded it: the same version again is nothing new to them.
        return Difference(plan, "a tombstone stands there, or lies below", beyond=epoch)
    if said is None:
        what = "the topic has no record of it" if record is None else "followers refuse its record"
        return Difference(plan, what)
    mine = (epoch, plan.version, plan.state == "retired")
    if said.identity.rank != mine:
        newer = said.identity.rank > mine
        what = "which the database does not know" if newer else "an older one"
        other = f"version {said.identity.version} of epoch {said.identity.epoch}, {what}"
        return Difference(plan, f"{other}, stands there", said.identity.epoch if newer else None)
    if plan.state == "published" and said.identity.sha256 != plan.sha256:
        return Difference(plan, "its version stands there with other bytes", beyond=epoch)
    if until is not None and (said.lease_until is None or said.lease_until < until - _EXACT):
        return Difference(plan, "it stands there with an older lease")
    return None


def mend(
    store: PlanStore,
    found: Sequence[Difference],
    *,
    topic: Topic,
    options: PublishOptions,
    now: datetime,
) -> Iterator[Delivered]:
    """Say again what the database says; raises as `delivery.deliver`."""
    wanted = [
        PublishRequest(
            difference.plan.group,
            difference.plan.version,
            "retired" if difference.plan.state == "retired" else "plan",
            lease_until=None if difference.plan.state == "retired" else now + options.lease,
            beyond=difference.beyond,
        )
        for difference in found
    ]
    yield from deliver(store.outbox(), topic, wanted, options)
