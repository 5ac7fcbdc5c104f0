"""Differences between the plan topic and the database.

Belongs here: comparing groups' newest records with their published or withdrawn versions. Belongs
elsewhere: sending records again (`reconciling`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from fairlead.domain.records import StoredPlan
from fairlead.kafka.compacted_topic import Record
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store.outbox_entries import Standing
from fairlead.store.plans import PlanStore
from fairlead.store.published_records import PublishedRecord
from fairlead.wire.record import Origin
from fairlead.wire.record_reading import VerifiedRecord
from fairlead.wire.signing import Verifier
from fairlead.workflows.delivery import accepted

#: Leases whose ends differ by less count as equal, because records round times to milliseconds.
_EXACT: Final = timedelta(seconds=1)


@dataclass(frozen=True)
class Difference:
    """A difference between a group's newest record and the database.

    Parameters
    ----------
    plan
        The published or withdrawn version.
    what
        Description of the difference.
    beyond
        The epoch (the major part of a record's rank) that the next record must exceed, so that
        consumers do not ignore it; None: the next record keeps its epoch.
    """

    plan: StoredPlan
    what: str
    beyond: int | None = None


def differences(
    plans: PlanStore,
    groups: Iterable[str] | None,
    *,
    topic: PlanTopic,
    verifier: Verifier | None,
) -> list[Difference]:
    """Return how newest records differ from the versions that were published or withdrawn last.

    Groups with a pending record are left out.

    Parameters
    ----------
    groups
        Groups to compare; None: all.
    verifier
        Verifies that records are the planner's; None: records are not signed.
    """
    complete = [group for group in plans.outbox().standing(groups) if group.entry is None]
    compared = []
    for _, gathered, newest in by_partition(topic, complete):
        origin = topic.origin
        compared += [
            compare(group, newest.get(group.group), origin, verifier) for group in gathered
        ]
    return [difference for difference in compared if difference is not None]


def by_partition(
    topic: PlanTopic, groups: Iterable[Standing]
) -> Iterator[tuple[int, list[Standing], Mapping[str, Record]]]:
    """Yield each partition of the plan topic, its groups, and the newest records of these groups.

    Only records of groups that had a plan are read.
    """
    groups_of: dict[int, list[Standing]] = {}
    for group in groups:
        groups_of.setdefault(topic.partition_for_key(group.group), []).append(group)
    for partition, gathered in sorted(groups_of.items()):
        names = [group.group for group in gathered if group.followed is not None]
        yield partition, gathered, topic.newest(partition, names) if names else {}


def compare(
    group: Standing, record: Record | None, origin: Origin, verifier: Verifier | None
) -> Difference | None:
    """Return how a group's newest record differs from the database; None if both agree."""
    plan, sent = group.followed, group.record
    if plan is None or sent is None:
        return None
    read = None if record is None else accepted(record, origin, verifier)
    unsigned = verifier is None  # consumers obey a tombstone unless plans are signed
    if record is not None and unsigned and record.tombstone > min(record.began, sent.record_offset):
        # Consumers have dropped the plan. If it were sent again with its old epoch, they would
        # ignore it.
        return Difference(plan, "the topic has a tombstone for this plan", beyond=sent.epoch)
    if read is None:
        what = (
            "the topic has no record of it"
            if record is None
            else "plan followers reject its record"
        )
        return Difference(plan, what)
    return _compare_records(plan, sent, read)


def _compare_records(
    plan: StoredPlan, sent: PublishedRecord, read: VerifiedRecord
) -> Difference | None:
    rank = (sent.epoch, plan.version, plan.state == "withdrawn")
    if read.identity.rank != rank:
        newer = read.identity.rank > rank
        what = "which the database does not know" if newer else "which is older"
        other = f"version {read.identity.version} of epoch {read.identity.epoch}, {what}"
        return Difference(plan, f"the topic has {other}", read.identity.epoch if newer else None)
    if plan.state == "published" and read.identity.sha256 != plan.sha256:
        return Difference(plan, "the topic has this version with other bytes", beyond=sent.epoch)
    until = sent.lease_until
    if until is not None and (read.lease_until is None or read.lease_until < until - _EXACT):
        return Difference(plan, "the topic has this version with an older lease")
    return None
