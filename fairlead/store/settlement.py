"""Outcomes of outbox entries: sent, refused or discarded.

Belongs here: the statements, for many groups at once, inside a transaction that has locked them.
Does not: opening the transaction (`outbox`).
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, select, tuple_

from fairlead.store.attempts import forget_attempts
from fairlead.store.models import Plan, PlanIntent
from fairlead.store.outbox_entries import FOLLOWED, ON_ITS_WAY, OutboxEntry
from fairlead.store.published_records import PublishedRecord, record_sent
from fairlead.store.shared_statements import close_open_plans, record_events


def unsettled(connection: Connection, intents: Sequence[OutboxEntry]) -> set[str]:
    """Return the groups with open entries; delete entries whose plan is in another state."""
    keys = [(intent.group, intent.plan.version) for intent in intents]
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
            select(PlanIntent.__table__).where(
                PlanIntent.group_id.in_([intent.group for intent in intents])
            )
        )
    }
    open_groups, outlived = set(), []
    for intent in intents:
        state, row = states.get((intent.group, intent.plan.version)), rows.get(intent.group)
        if intent.again:
            if state == FOLLOWED[intent.kind]:  # otherwise the group now follows another plan
                open_groups.add(intent.group)
        elif row is not None and (row.kind, row.version, row.epoch) == intent.key:
            if state == ON_ITS_WAY[intent.kind]:
                open_groups.add(intent.group)
            else:
                outlived.append(intent.group)
    _forget(connection, outlived)
    return open_groups


def confirm(connection: Connection, ones: list[tuple[OutboxEntry, PublishedRecord]]) -> None:
    """Record that entries were sent, and end the plans that they replace."""
    new = [(intent, sent) for intent, sent in ones if not intent.again]
    published = [(intent, sent) for intent, sent in new if intent.kind == "plan"]
    withdrawn = [(intent, sent) for intent, sent in new if intent.kind == "withdrawn"]
    _supersede(connection, {intent.group: intent.plan.version for intent, _ in published})
    record_events(connection, [_publication(intent, sent) for intent, sent in published])
    ended = {
        settled.group: f"version {settled.plan.version} was withdrawn" for settled, _ in withdrawn
    }
    close_open_plans(connection, ended)
    for intent, sent in withdrawn:
        where = f"sent to {sent.topic}-{sent.partition} at offset {sent.offset}"
        row = step(intent, "withdrawn", f"{intent.reason} ({where})")
        record_events(connection, [row | ({"actor": intent.actor} if intent.actor else {})])
    forget_attempts(connection, [intent.group for intent, _ in ones])
    record_sent(
        connection,
        [(settled.group, settled.plan.version, settled.kind, sent) for settled, sent in ones],
    )
    _forget(connection, [intent.group for intent, _ in new])


def _supersede(connection: Connection, versions: Mapping[str, int]) -> None:
    """Supersede the plans that groups followed before these versions."""
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


def _publication(intent: OutboxEntry, sent: PublishedRecord) -> dict[str, object]:
    reason = f"sent to {sent.topic}-{sent.partition} at offset {sent.offset}"
    where = {"topic": sent.topic, "partition": sent.partition, "record_offset": sent.offset}
    return step(intent, "published", reason) | where


def step(intent: OutboxEntry, state: str, reason: str) -> dict[str, object]:
    """Return the event that takes an entry's plan to a state."""
    return {
        "group_id": intent.group,
        "version": intent.plan.version,
        "state": state,
        "reason": reason,
    }


def end(connection: Connection, ones: list[tuple[OutboxEntry, str]], state: str) -> None:
    """End entries that were not sent; after an unsent withdrawal the plan stays published."""
    new = [(intent, reason) for intent, reason in ones if not intent.again]
    plans = [step(intent, state, reason) for intent, reason in new if intent.kind == "plan"]
    record_events(connection, plans)
    _forget(connection, [intent.group for intent, _ in new])


def _forget(connection: Connection, groups: Sequence[str]) -> None:
    if groups:
        connection.execute(delete(PlanIntent).where(PlanIntent.group_id.in_(groups)))
