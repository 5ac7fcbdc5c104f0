"""What the plan topic has, as far as the database knows.

Belongs here: the record of each group, and the epochs of their versions. Does not: what is on its
way there (`outbox`).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert

from fairlead.store.models import PlanTold
from fairlead.store.shared_statements import among
from fairlead.wire.record import Kind


@dataclass(frozen=True)
class PublishedRecord:
    """A record that the plan topic has taken.

    Parameters
    ----------
    epoch, lease_until
        As in the record.
    topic, partition, offset
        Where it is.
    """

    epoch: int
    lease_until: datetime | None
    topic: str
    partition: int
    offset: int


def last_records(connection: Connection, groups: Sequence[str]) -> dict[str, PublishedRecord]:
    """Return the record of each group that was recorded last as sent."""
    rows = connection.execute(select(PlanTold.__table__).where(among(PlanTold.group_id, groups)))
    return {
        row.group_id: PublishedRecord(
            row.epoch, row.lease_until, row.topic, row.partition, row.record_offset
        )
        for row in rows
    }


def epochs_of(connection: Connection, beyond: Mapping[str, int | None]) -> dict[str, int]:
    """Return the epoch of each group's next record; drawn where there was none, or a withdrawal.

    Epochs are milliseconds: one that is drawn is later than any before, also than those that a
    database which was lost or restored knows nothing of.

    Parameters
    ----------
    beyond
        Group to an epoch that it must go beyond, which is drawn too; None: to none.
    """
    known = {
        row.group_id: row
        for row in connection.execute(
            select(PlanTold.group_id, PlanTold.epoch, PlanTold.kind).where(
                PlanTold.group_id.in_(list(beyond))
            )
        )
    }
    now = time.time_ns() // 1_000_000

    def epoch(group: str) -> int:
        last, floor = known.get(group), beyond[group]
        if last is not None and last.kind == "plan" and floor is None:
            return int(last.epoch)
        return max(now, 0 if last is None else last.epoch + 1, (floor or 0) + 1)

    return {group: epoch(group) for group in beyond}


def begin_epochs(connection: Connection, epochs: Mapping[str, int]) -> None:
    """Record the epochs of what is said again in new ones, before it is sent."""
    for group, epoch in epochs.items():  # rare: somebody has written to the topic
        connection.execute(update(PlanTold).where(PlanTold.group_id == group).values(epoch=epoch))


def record_sent(
    connection: Connection, records: Sequence[tuple[str, int, Kind, PublishedRecord]]
) -> None:
    """Record what stands in the plan topic now under groups' keys: group, version, kind, where."""
    if not records:
        return
    rows = [
        {
            "group_id": group,
            "version": version,
            "kind": kind,
            "epoch": sent.epoch,
            "lease_until": sent.lease_until,
            "topic": sent.topic,
            "partition": sent.partition,
            "record_offset": sent.offset,
        }
        for group, version, kind, sent in records
    ]
    new = insert(PlanTold)
    said = {name: new.excluded[name] for name in rows[0] if name != "group_id"}
    connection.execute(
        new.on_conflict_do_update(
            index_elements=[PlanTold.group_id],
            set_={**said, "at": func.now()},
            where=new.excluded.epoch >= PlanTold.epoch,  # whoever comes late takes nothing back
        ),
        rows,
    )
