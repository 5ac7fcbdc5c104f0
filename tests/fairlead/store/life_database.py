"""Plans in a real database, changed by several people, each with a connection of their own.

Belongs here: applying an operation of `life_model` to the database, and returning its result.
Belongs elsewhere: the expected result (`life_model`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import RLock
from typing import Any, Final

import psycopg
from sqlalchemy.exc import IntegrityError

from fairlead.domain.records import Decision
from fairlead.errors import FairleadError, PlanStateError
from fairlead.store.outbox import Outbox, OutboxEntry, PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.wire.document import content_hash
from tests.fairlead.store.life_model import (
    SUPERUSER,
    Decide,
    Expire,
    Operation,
    Propose,
    Publish,
    Step,
    Tamper,
    Withdraw,
)
from tests.fixtures.plans import LEASE_UNTIL, SNAPSHOT_AT, MakeDraft, sent
from tests.stored import record_decision

NOW: Final = datetime.now(UTC)
LATER: Final = NOW + timedelta(days=2)
HELD: Final = """
    SELECT version, four_eyes, rolled_back_from, plan.state, document, plan.sha256,
           array_agg(event.state ORDER BY event.at), bool_and(event.sha256 = plan.sha256)
    FROM fairlead_raw.plan JOIN fairlead_raw.plan_event event USING (group_id, version)
    WHERE group_id = %s GROUP BY group_id, version ORDER BY version
"""


@dataclass
class Database:
    """A database, and a connection to it for each person who works on plans.

    Parameters
    ----------
    stores, urls
        The store and the URL of each person.
    draft
        Function that returns a plan draft.
    """

    stores: dict[str, PlanStore]
    urls: dict[str, str]
    draft: MakeDraft
    lives: "count[int]" = field(default_factory=count)
    #: Sending takes two transactions. The lock makes a send or a manual step appear atomic.
    sending: "RLock" = field(default_factory=RLock)

    def __post_init__(self) -> None:
        """Open each person's connection for SQL."""
        self.sql = {who: psycopg.connect(url, autocommit=True) for who, url in self.urls.items()}

    def apply(self, operation: Operation, group: str) -> str:
        """Apply an operation; return the result, or the error's SQLSTATE or class name."""
        attempts: dict[type[Operation], Callable[[Any, str], str]] = {
            Propose: self._propose,
            Decide: self._decide,
            Publish: self._publish,
            Withdraw: self._withdraw,
            Expire: self._expire,
            Step: self._step,
            Tamper: self._tamper,
        }
        try:
            return attempts[type(operation)](operation, group)
        except InterruptedError:
            return "died"
        except (FairleadError, IntegrityError) as error:
            return type(error).__name__
        except psycopg.Error as error:
            return str(error.sqlstate)

    def _propose(self, operation: Propose, group: str) -> str:
        draft = self.draft(
            f"s{operation.snapshot}",
            group=group,
            four_eyes=operation.four_eyes,
            rolled_back_from=operation.again,
            expires_at=None
            if operation.expires_in is None
            else NOW + timedelta(days=operation.expires_in),
        )
        nothing = Decision(
            group=group, snapshot_id=draft.snapshot_id, snapshot_at=SNAPSHOT_AT, reason="even"
        )
        stored = record_decision(self.stores[operation.who], draft if operation.plan else nothing)
        version = stored.plan and stored.plan.version
        return f"{'stored' if stored.created else 'again'} {version}"

    def _decide(self, operation: Decide, group: str) -> str:
        store, version = self.stores[operation.who], operation.version
        if operation.state == "rejected":
            return store.reject(group, version, reason="no").state
        sha256 = store.get(group, version).sha256 if operation.right_hash else "0" * 64
        return store.approve(group, version, sha256=sha256, reason="yes").state

    def _publish(self, operation: Publish, group: str) -> str:
        with self.sending:
            return self._send(operation, group)

    def _send(self, operation: Publish, group: str) -> str:
        store = self.stores[operation.who]
        outbox = self._outbox(store)
        if left := outbox.outstanding([group]):
            return self._settle(outbox, left[0], operation.how, done="settled")
        approved = store.in_state("approved", groups=[group])
        if not approved:
            return "nothing waits"
        assert approved[0].approved_sha256 == content_hash(approved[0].document)
        if operation.how == "stale":
            stale = store.mark_stale(approved[0], reason="somebody joined")
            return "stale" if stale else self._send(operation, group)
        wanted = PublishRequest(group, approved[0].version, lease_until=LEASE_UNTIL)
        with outbox.turn("plans", 0) as turn:
            entries = turn.add([wanted])
        if not entries:  # the state has changed meanwhile; for example, the plan has expired
            return self._send(operation, group)
        return self._settle(outbox, entries[0], operation.how, done="sent")

    def _withdraw(self, operation: Withdraw, group: str) -> str:
        with self.sending:
            return self._take_back(operation, group)

    def _take_back(self, operation: Withdraw, group: str) -> str:
        store = self.stores[operation.who]
        outbox, published = self._outbox(store), store.published(group)
        if published is None:
            raise PlanStateError
        with outbox.turn("plans", 0) as turn:
            wanted = PublishRequest(group, published.version, "withdrawn", reason="enough")
            entries = turn.add([wanted])
        if not entries:
            raise PlanStateError
        return self._settle(outbox, entries[0], operation.how, done="sent")

    def _outbox(self, store: PlanStore) -> Outbox:
        """Take over the plan topic's partition, as each publisher does first; return the outbox."""
        outbox = Outbox(store.engine)
        with outbox.turn("plans", 0):
            return outbox

    def _settle(self, outbox: Outbox, entry: OutboxEntry, how: str, *, done: str) -> str:
        if how == "died":
            raise InterruptedError
        if how == "stale" and entry.kind == "plan":
            with outbox.turn("plans", 0) as turn:
                lock = turn.lock
            outbox.discard({entry.group: (entry, "somebody joined")}, lock)
        else:
            until = LEASE_UNTIL if entry.kind == "plan" else None
            at = sent(entry.plan.version, lease_until=until)
            outbox.confirm({entry.group: (entry, at)})
        return done

    def _expire(self, operation: Expire, group: str) -> str:
        ended = self.stores[operation.who].expire_due(LATER)
        return f"ended {[version for name, version in ended if name == group]}"

    def _step(self, operation: Step, group: str) -> str:
        published = operation.state == "published"
        with self.sending:
            self._insert(operation, group, published=published)
        return operation.state

    def _insert(self, operation: Step, group: str, *, published: bool) -> None:
        self.sql[operation.who].execute(
            "INSERT INTO fairlead_raw.plan_event"
            " (group_id, version, state, reason, topic, partition, record_offset)"
            " VALUES (%s, %s, %s, 'by hand', %s, %s, %s)",
            [
                *(group, operation.version, operation.state),
                *(("plans", 0, operation.version) if published else (None, None, None)),
            ],
        )

    def _tamper(self, operation: Tamper, group: str) -> str:
        self.sql[operation.who].execute(operation.statement.encode(), [group])
        return "done"

    def held(self, group: str) -> tuple[list[Any], dict[str, int | None]]:
        """Return the rows of a group's versions, and {snapshot: version that was stored for it}."""
        reader = self.sql[SUPERUSER]
        decided = reader.execute(
            "SELECT snapshot_id, version FROM fairlead.decision WHERE group_id = %s", [group]
        )
        decisions: dict[str, int | None] = dict(decided.fetchall())
        return reader.execute(HELD.encode(), [group]).fetchall(), decisions
