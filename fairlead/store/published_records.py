"""The newest record of each group in the plan topic, as stored in the database.

Belongs here: records that were sent, and the epochs of the next records. Belongs elsewhere: pending
records (`outbox`).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert

from fairlead.store.models.plan import LastRecord
from fairlead.store.shared_statements import among
from fairlead.wire.record import Kind


@dataclass(frozen=True)
class PublishedRecord:
    """A record in the plan topic.

    Parameters
    ----------
    epoch, lease_until
        The record's epoch, and the time at which its lease ends.
    topic, partition, record_offset
        The position of the record.
    """

    epoch: int
    lease_until: datetime | None
    topic: str
    partition: int
    record_offset: int

    @property
    def place(self) -> str:
        """The position of the record as text for messages."""
        return f"{self.topic}-{self.partition} at offset {self.record_offset}"


def last_records(connection: Connection, groups: Sequence[str]) -> dict[str, PublishedRecord]:
    """Return the last published record of each group."""
    columns = [getattr(LastRecord, field.name) for field in fields(PublishedRecord)]
    rows = connection.execute(
        select(LastRecord.group_id, *columns).where(among(LastRecord.group_id, groups))
    )
    return {group: PublishedRecord(*record) for group, *record in rows}


def epochs_of(connection: Connection, beyond: Mapping[str, int | None]) -> dict[str, int]:
    """Return the epoch of each group's next record.

    Usually the epoch of the group's last record is used again. A new epoch is needed if there is no
    last record, if the last record is a withdrawal, or if `beyond` has an epoch. The new epoch is
    the present time in milliseconds. So it exceeds all earlier epochs, even if the database has
    lost them.

    Parameters
    ----------
    beyond
        Maps each group to an epoch that the next epoch must exceed; None: no new epoch is needed.
    """
    known = {
        row.group_id: row
        for row in connection.execute(
            select(LastRecord.group_id, LastRecord.epoch, LastRecord.kind).where(
                LastRecord.group_id.in_(list(beyond))
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
    """Store the new epochs of records that will be sent again."""
    for group, epoch in epochs.items():  # few groups need a new epoch, so one statement for each
        connection.execute(
            update(LastRecord).where(LastRecord.group_id == group).values(epoch=epoch)
        )


def record_sent(
    connection: Connection, records: Sequence[tuple[str, int, Kind, PublishedRecord]]
) -> None:
    """Store the newest record of each group, from tuples of group, version, kind and record."""
    if not records:
        return
    rows = [
        {"group_id": group, "version": version, "kind": kind} | vars(sent)
        for group, version, kind, sent in records
    ]
    new = insert(LastRecord)
    columns = {name: new.excluded[name] for name in rows[0] if name != "group_id"}
    connection.execute(
        new.on_conflict_do_update(
            index_elements=[LastRecord.group_id],
            set_={**columns, "at": func.now()},
            # Skip a record with a lower epoch: it is from a delayed publisher.
            where=new.excluded.epoch >= LastRecord.epoch,
        ),
        rows,
    )
