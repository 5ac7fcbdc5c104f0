"""Outcomes of outbox entries: sent, refused or discarded.

Belongs here: statements that record the outcomes of many groups' entries at once; the transaction
must have locked the groups. Belongs elsewhere: opening the transaction (`outbox`).
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, select, tuple_

from fairlead.store.attempts import forget_attempts
from fairlead.store.models.plan import OutboxRow, Plan
from fairlead.store.outbox_entries import FOLLOWED, ON_ITS_WAY, OutboxEntry
from fairlead.store.published_records import PublishedRecord, record_sent
from fairlead.store.shared_statements import close_open_plans, record_events


def still_pending(connection: Connection, entries: Sequence[OutboxEntry]) -> set[str]:
    """Return the groups whose entries are still pending.

    Deletes an entry if its plan's state shows that the record is not being sent any more.
    """
    keys = [(entry.group, entry.plan.version) for entry in entries]
    states = {
        (row.group_id, row.version): row.state
        for row in connection.execute(
            select(Plan.group_id, Plan.version, Plan.state).where(
                tuple_(Plan.group_id, Plan.version).in_(keys)
            )
        )
    }
    rows = {
        row.group_id: row
        for row in connection.execute(
            select(OutboxRow.__table__).where(
                OutboxRow.group_id.in_([entry.group for entry in entries])
            )
        )
    }
    pending, outlived = set(), []
    for entry in entries:
        state, row = states.get((entry.group, entry.plan.version)), rows.get(entry.group)
        if entry.again:
            if state == FOLLOWED[entry.kind]:  # else another plan has replaced the entry's plan
                pending.add(entry.group)
        elif row is not None and (row.kind, row.version, row.epoch) == entry.key:
            if state == ON_ITS_WAY[entry.kind]:
                pending.add(entry.group)
            else:
                outlived.append(entry.group)
    _forget(connection, outlived)
    return pending


def confirm(connection: Connection, entries: list[tuple[OutboxEntry, PublishedRecord]]) -> None:
    """Record that entries were sent, and end the plans that the sent plans replace."""
    new = [(entry, sent) for entry, sent in entries if not entry.again]
    published = [(entry, sent) for entry, sent in new if entry.kind == "plan"]
    withdrawn = [(entry, sent) for entry, sent in new if entry.kind == "withdrawn"]
    _supersede(connection, {entry.group: entry.plan.version for entry, _ in published})
    record_events(connection, [_publication(entry, sent) for entry, sent in published])
    ended = {entry.group: f"version {entry.plan.version} was withdrawn" for entry, _ in withdrawn}
    close_open_plans(connection, ended)
    for entry, sent in withdrawn:
        row = step(entry, "withdrawn", f"{entry.reason} (sent to {sent.place})")
        record_events(connection, [row | ({"actor": entry.actor} if entry.actor else {})])
    forget_attempts(connection, [entry.group for entry, _ in entries])
    record_sent(
        connection,
        [(entry.group, entry.plan.version, entry.kind, sent) for entry, sent in entries],
    )
    _forget(connection, [entry.group for entry, _ in new])


def _supersede(connection: Connection, versions: Mapping[str, int]) -> None:
    """Change groups' published plans to `superseded`; `versions` maps groups to new versions."""
    older = connection.execute(
        select(Plan.group_id, Plan.version).where(
            Plan.group_id.in_(list(versions)), Plan.state == "published"
        )
    )
    record_events(
        connection,
        [
            {
                "group_id": row.group_id,
                "version": row.version,
                "state": "superseded",
                "reason": f"version {versions[row.group_id]} was published",
            }
            for row in older
        ],
    )


def _publication(entry: OutboxEntry, sent: PublishedRecord) -> dict[str, object]:
    where = {"topic": sent.topic, "partition": sent.partition, "record_offset": sent.record_offset}
    return step(entry, "published", f"sent to {sent.place}") | where


def step(entry: OutboxEntry, state: str, reason: str) -> dict[str, object]:
    """Return the event that changes the state of an entry's plan, as a row."""
    return {
        "group_id": entry.group,
        "version": entry.plan.version,
        "state": state,
        "reason": reason,
    }


def end(connection: Connection, entries: list[tuple[OutboxEntry, str]], state: str) -> None:
    """Delete entries that were not sent, and change their plans to `state`.

    If the entry is a withdrawal, its plan stays published.
    """
    new = [(entry, reason) for entry, reason in entries if not entry.again]
    plans = [step(entry, state, reason) for entry, reason in new if entry.kind == "plan"]
    record_events(connection, plans)
    _forget(connection, [entry.group for entry, _ in new])


def _forget(connection: Connection, groups: Sequence[str]) -> None:
    if groups:
        connection.execute(delete(OutboxRow).where(OutboxRow.group_id.in_(groups)))
