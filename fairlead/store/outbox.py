"""The outbox: records for the plan topic, committed before they are sent.

Belongs here: transactions on entries, and reading the plans and records of groups. Belongs
elsewhere: the statements that end entries (`settlement`), sending (`fairlead.kafka.plan_channel`),
and the order of transactions and sending (`fairlead.workflows.reconciling`).

Adding an entry changes an approved plan to `sending`. The plan becomes `published` after its record
was sent, or `refused` if Kafka rejects the record. After a crash in between, the entry is still
there: the next reconciliation reads the topic and completes the entry. If a record is sent again,
the plan does not change, so no entry is stored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection, Engine, and_, func, or_, select, text, tuple_
from sqlalchemy.dialects.postgresql import insert

from fairlead.domain.records import StoredPlan
from fairlead.errors import StoreUnavailableError
from fairlead.store.engine import transaction
from fairlead.store.freezes import freeze_on, holding
from fairlead.store.models.plan import LastRecord, OutboxRow, Plan
from fairlead.store.outbox_entries import (
    FOLLOWED,
    POSSIBLE,
    OutboxEntry,
    PublishRequest,
    Standing,
)
from fairlead.store.published_records import (
    PublishedRecord,
    begin_epochs,
    epochs_of,
    last_records,
)
from fairlead.store.settlement import confirm, end, step, still_pending
from fairlead.store.shared_statements import (
    PATIENCE,
    among,
    find_plans,
    lock_groups,
    plans_at,
    record_events,
)

__all__ = ["Outbox", "OutboxEntry", "PartitionLock", "PublishRequest", "Standing", "Turn"]

Outcome = TypeVar("Outcome")

#: Longest time that a publisher's transaction may be idle while it holds a partition's lock.
HANGS: Final = "60s"


@dataclass(frozen=True)
class PartitionLock:
    """A locked partition of the plan topic; `number` increases whenever the partition is locked."""

    topic: str
    partition: int
    number: int


@dataclass(frozen=True)
class Turn:
    """The time during which one publisher has locked a partition; `Outbox.turn` begins it.

    Parameters
    ----------
    lock
        The locked partition, with the number of this turn.
    """

    lock: PartitionLock
    _connection: Connection

    def add(self, requests: Sequence[PublishRequest]) -> list[OutboxEntry]:
        """Record entries for requests; the end of the turn's `with` block commits them.

        Leaves out plans whose state no longer allows the request, groups with a pending entry, and
        groups locked by another open transaction. Also leaves out new versions of frozen groups,
        and of groups that another transaction may be freezing.
        """
        connection = self._connection
        free = lock_groups(connection, [request.group for request in requests])
        busy = connection.scalars(select(OutboxRow.group_id).where(OutboxRow.group_id.in_(free)))
        free -= set(busy)
        keys = [(request.group, request.version) for request in requests if request.group in free]
        plans = plans_at(connection, keys)
        possible = [
            request
            for request in requests
            if request.group in free
            and (request.group, request.version) in plans
            and plans[request.group, request.version].state in POSSIBLE[request.kind]
        ]
        frozen = self._frozen(
            plans[request.group, request.version] for request in possible if request.kind == "plan"
        )
        possible = [request for request in possible if request.group not in frozen]
        epochs = epochs_of(connection, {request.group: request.beyond for request in possible})
        entries = [
            OutboxEntry(
                plan=(plan := plans[request.group, request.version]),
                kind=request.kind,
                epoch=epochs[request.group],
                lease_until=request.lease_until,
                again=plan.state == FOLLOWED[request.kind],
                reason=request.reason,
                actor=request.actor,
            )
            for request in possible
        ]
        # Store a new epoch before sending it, so that later epochs are higher, even after a crash.
        begin_epochs(
            connection,
            {request.group: epochs[request.group] for request in possible if request.beyond},
        )
        self._record([entry for entry in entries if not entry.again])
        return entries

    def _frozen(self, plans: Iterable[StoredPlan]) -> set[str]:
        """Return the groups of new plans that are frozen or that a transaction may be freezing."""
        new = [plan for plan in plans if plan.state == "approved" and plan.rolled_back_from is None]
        if not new:
            return set()
        if not self._connection.scalar(select(func.fairlead_raw.lock_freezes(PATIENCE))):
            return {plan.group for plan in new}
        freezes = holding(self._connection)
        return {plan.group for plan in new if freeze_on(plan, freezes)}

    def _record(self, entries: Sequence[OutboxEntry]) -> None:
        if not entries:
            return
        record_events(
            self._connection,
            [
                step(entry, "sending", "on its way to the plan topic")
                for entry in entries
                if entry.kind == "plan"
            ],
        )
        rows = [
            {
                "group_id": entry.group,
                "kind": entry.kind,
                "version": entry.plan.version,
                "epoch": entry.epoch,
                "lease_until": entry.lease_until,
                "reason": entry.reason or None,
                "actor": entry.actor,
            }
            for entry in entries
        ]
        self._connection.execute(insert(OutboxRow), rows)


class Outbox:
    """The outbox of the plan topic.

    Parameters
    ----------
    engine
        From `create_store_engine`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def turn(self, topic: str, partition: int) -> Iterator[Turn]:
        """Lock a partition of the plan topic; commit the entries and unlock when the block ends.

        In the `with` block, the caller first fences earlier publishers, then records entries. The
        connection that holds the lock also commits the entries. So a publisher that hung and lost
        the lock cannot commit, and sends nothing.

        Raises
        ------
        StoreUnavailableError
            Another publisher holds the lock for too long, or this publisher lost the lock.
        """
        with transaction(self._engine) as connection:
            connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{HANGS}'"))
            number = connection.scalar(select(func.fairlead_raw.lock_partition(topic, partition)))
            yield Turn(PartitionLock(topic, partition, int(number or 0)), connection)

    def outstanding(self, groups: Iterable[str] | None = None) -> list[OutboxEntry]:
        """Return the pending entries of some groups, or of all."""
        with transaction(self._engine) as connection:
            return _entries(connection, groups)

    def standing(self, groups: Iterable[str] | None = None) -> list[Standing]:
        """Return the plans and records of some or all groups; leave out groups without plans."""
        names = None if groups is None else list(groups)
        conditions = [] if names is None else [among(Plan.group_id, names)]
        last = select(LastRecord.group_id, LastRecord.version).where(LastRecord.kind == "withdrawn")
        withdrawn = and_(Plan.state == "withdrawn", tuple_(Plan.group_id, Plan.version).in_(last))
        with transaction(self._engine) as connection:
            entries = {entry.group: entry for entry in _entries(connection, names)}
            plans = find_plans(
                connection, or_(Plan.state.in_(("approved", "published")), withdrawn), *conditions
            )
            approved = {plan.group: plan for plan in plans if plan.state == "approved"}
            followed = {plan.group: plan for plan in plans if plan.state != "approved"}
            followed |= {plan.group: plan for plan in plans if plan.state == "published"}
            records = last_records(connection, list(followed))
        return [
            Standing(
                group=group,
                entry=entries.get(group),
                approved=approved.get(group),
                followed=followed.get(group),
                record=records.get(group),
            )
            for group in sorted({*entries, *approved, *followed})
        ]

    def confirm(self, sent: Mapping[str, tuple[OutboxEntry, PublishedRecord]]) -> None:
        """Record that entries were sent; skip entries whose outcome was recorded before.

        `confirm`, `refuse` and `discard` skip groups that another open transaction has locked: the
        next reconciliation finds the records of these groups in the topic.
        """
        self._settle(sent, confirm)

    def refuse(self, refused: Mapping[str, tuple[OutboxEntry, str]], lock: PartitionLock) -> None:
        """Record that Kafka rejected entries, with the reasons; their plans become `refused`.

        Raises
        ------
        StoreUnavailableError
            Another publisher has locked the partition after `lock`, and may have sent the entries.
        """
        self._settle(refused, partial(end, state="refused"), lock)

    def discard(
        self, discarded: Mapping[str, tuple[OutboxEntry, str]], lock: PartitionLock
    ) -> None:
        """Record that entries will not be sent, with the reasons; their plans become `stale`.

        Raises the errors of `refuse`.
        """
        self._settle(discarded, partial(end, state="stale"), lock)

    def _settle(
        self,
        entries: Mapping[str, tuple[OutboxEntry, Outcome]],
        record: Callable[[Connection, list[tuple[OutboxEntry, Outcome]]], None],
        lock: PartitionLock | None = None,
    ) -> None:
        """Lock the groups, and record the outcome of their entries that are still pending."""
        if not entries:
            return
        with transaction(self._engine) as connection:
            if lock is not None:
                _require_lock(connection, lock)
            free = lock_groups(connection, entries)
            pending = still_pending(connection, [entries[group][0] for group in sorted(free)])
            if pending:
                record(connection, [entries[group] for group in sorted(pending)])


def _entries(connection: Connection, groups: Iterable[str] | None) -> list[OutboxEntry]:
    conditions = [] if groups is None else [among(OutboxRow.group_id, groups)]
    rows = connection.execute(
        select(OutboxRow.__table__).where(*conditions).order_by(OutboxRow.group_id)
    ).all()
    plans = plans_at(connection, [(row.group_id, row.version) for row in rows])
    return [
        OutboxEntry(
            plans[row.group_id, row.version],
            row.kind,
            row.epoch,
            row.lease_until,
            reason=row.reason or "",
            actor=row.actor,
        )
        for row in rows
    ]


def _require_lock(connection: Connection, lock: PartitionLock) -> None:
    """Raise an error if another publisher has locked the partition since `lock` was taken."""
    last = connection.scalar(select(func.fairlead_raw.partition_turn(lock.topic, lock.partition)))
    if last != lock.number:
        raise StoreUnavailableError(
            f"Lost {lock.topic}-{lock.partition} to another publisher, which will finish the batch"
        )
