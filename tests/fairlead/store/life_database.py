"""The plans of groups in the database, as several people have it open at once.

Belongs here: doing to the database what `life_model` names, and what whoever does it is told. Does
not: what must come of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import psycopg
from sqlalchemy.exc import IntegrityError

from fairlead.errors import FairleadError
from fairlead.plans.document import content_hash
from fairlead.store import NoPlan, PlanStore
from tests.fairlead.store.conftest import SNAPSHOT_AT, MakeDraft, sent
from tests.fairlead.store.life_model import (
    SUPERUSER,
    Decide,
    Expire,
    Operation,
    Propose,
    Publish,
    Retire,
    Step,
    Tamper,
)

NOW: Final = datetime.now(UTC)
LATER: Final = NOW + timedelta(days=1)
HELD: Final = """
    SELECT version, four_eyes, rolled_back_from, plan.state, document, plan.sha256,
           array_agg(event.state ORDER BY event.at), bool_and(event.sha256 = plan.sha256)
    FROM fairlead_raw.plan JOIN fairlead_raw.plan_event event USING (group_id, version)
    WHERE group_id = %s GROUP BY group_id, version ORDER BY version
"""


@dataclass
class Database:
    """The real thing, as several people have it open.

    Parameters
    ----------
    stores, urls
        By who.
    draft
        Makes drafts.
    """

    stores: dict[str, PlanStore]
    urls: dict[str, str]
    draft: MakeDraft
    lives: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        """Open the connections of those who write SQL."""
        self.sql = {who: psycopg.connect(url, autocommit=True) for who, url in self.urls.items()}

    def apply(self, operation: Operation, group: str) -> str:
        """Do it, and return what whoever does it is told."""
        attempts: dict[type[Operation], Callable[[Any, str], str]] = {
            Propose: self._propose,
            Decide: self._decide,
            Publish: self._publish,
            Retire: self._retire,
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
            else NOW + timedelta(hours=operation.expires_in),
        )
        nothing = NoPlan(
            group=group, snapshot_id=draft.snapshot_id, snapshot_at=SNAPSHOT_AT, reason="even"
        )
        stored = self.stores[operation.who].record_decision(draft if operation.plan else nothing)
        version = stored.plan and stored.plan.version
        return f"{'stored' if stored.created else 'again'} {version}"

    def _decide(self, operation: Decide, group: str) -> str:
        store, version = self.stores[operation.who], operation.version
        if operation.state == "rejected":
            return store.reject(group, version, reason="no").state
        sha256 = store.get(group, version).sha256 if operation.right_hash else "0" * 64
        return store.approve(group, version, sha256=sha256, reason="yes").state

    def _publish(self, operation: Publish, group: str) -> str:
        with self.stores[operation.who].publication(group) as turn:
            if turn.plan is None:
                return "nothing waits"
            assert turn.plan.approved_sha256 == content_hash(turn.plan.document)
            if operation.how == "stale":
                turn.mark_stale(reason="somebody joined")
            else:
                turn.mark_published(sent(turn.plan.version))
            if operation.how == "died":
                raise InterruptedError
        return operation.how

    def _retire(self, operation: Retire, group: str) -> str:
        with self.stores[operation.who].retirement(group) as turn:
            turn.mark_retired(sent(lease_until=None), reason="enough")
            if operation.how == "died":
                raise InterruptedError
        return operation.how

    def _expire(self, operation: Expire, group: str) -> str:
        ended = self.stores[operation.who].expire_due(LATER)
        return f"ended {[version for name, version in ended if name == group]}"

    def _step(self, operation: Step, group: str) -> str:
        published = operation.state == "published"
        self.sql[operation.who].execute(
            "INSERT INTO fairlead_raw.plan_event"
            " (group_id, version, state, reason, topic, partition, record_offset)"
            " VALUES (%s, %s, %s, 'by hand', %s, %s, %s)",
            [
                *(group, operation.version, operation.state),
                *(("plans", 0, operation.version) if published else (None, None, None)),
            ],
        )
        return operation.state

    def _tamper(self, operation: Tamper, group: str) -> str:
        self.sql[operation.who].execute(operation.statement.encode(), [group])
        return "done"

    def held(self, group: str) -> tuple[list[Any], dict[str, int | None]]:
        """Return all that is held of a group: its versions, and what snapshots came to."""
        reader = self.sql[SUPERUSER]
        decided = reader.execute(
            "SELECT snapshot_id, version FROM fairlead.decision WHERE group_id = %s", [group]
        )
        decisions: dict[str, int | None] = dict(decided.fetchall())
        return reader.execute(HELD.encode(), [group]).fetchall(), decisions
