"""A group's turn: what publishers record while they hold the group's lock.

Belongs here: the transitions that go with something sent to Kafka. Does not: taking the lock and
committing (`plans`), sending (`fairlead.plans.publication`, `fairlead.plans.retirement`).
"""

import time
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from fairlead.errors import PlanStateError
from fairlead.plans.record import Kind
from fairlead.store.models import Plan, PlanTold
from fairlead.store.queries import close_open_plans, find_plans, record_event
from fairlead.store.records import StoredPlan


@dataclass(frozen=True)
class Sent:
    """A record that the plan topic has taken.

    Parameters
    ----------
    epoch, lease_until
        As it says.
    topic, partition, offset
        Where it stands.
    """

    epoch: int
    lease_until: datetime | None
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True)
class Publication:
    """A group's turn to be published, from `PlanStore.publication`.

    Parameters
    ----------
    plan
        The approved plan that waits; None: there is none. Not verified yet.
    """

    _connection: Connection
    group: str
    plan: StoredPlan | None

    def epoch(self) -> int:
        """Return the epoch that the plan's version is of; a new one after a retirement."""
        return epoch_of(self._connection, self.group)

    def mark_published(self, sent: Sent, *, actor: str | None = None) -> None:
        """Record where the plan's bytes are; the plan published so far is superseded."""
        plan = self._waiting()
        older = find_plans(self._connection, Plan.group_id == self.group, Plan.state == "published")
        for previous in older:
            record_event(
                self._connection,
                self.group,
                previous.version,
                "superseded",
                actor=actor,
                reason=f"version {plan.version} was published",
            )
        record_event(
            self._connection,
            self.group,
            plan.version,
            "published",
            actor=actor,
            reason=f"sent to {sent.topic}-{sent.partition} at offset {sent.offset}",
            topic=sent.topic,
            partition=sent.partition,
            record_offset=sent.offset,
        )
        record_sent(self._connection, self.group, plan.version, "plan", sent)

    def mark_stale(self, *, reason: str, actor: str | None = None) -> None:
        """Record that the plan no longer fits the group, and why."""
        plan = self._waiting()
        record_event(
            self._connection, self.group, plan.version, "stale", actor=actor, reason=reason
        )

    def _waiting(self) -> StoredPlan:
        if self.plan is None:
            raise PlanStateError(f"group {self.group} has no approved plan to publish")
        return self.plan


@dataclass(frozen=True)
class Refreshment:
    """A group's turn to be told again of the plan it follows, from `PlanStore.refreshment`.

    Parameters
    ----------
    plan
        The published plan; None: there is none any more.
    """

    _connection: Connection
    plan: StoredPlan | None

    def epoch(self) -> int:
        """Return the epoch that the plan's version is of."""
        return epoch_of(self._connection, self._published().group)

    def mark_told(self, sent: Sent) -> None:
        """Record until when the plan is told to hold. It is no step in the plan's life."""
        plan = self._published()
        record_sent(self._connection, plan.group, plan.version, "plan", sent)

    def _published(self) -> StoredPlan:
        if self.plan is None:
            raise PlanStateError("the group has no published plan")
        return self.plan


@dataclass(frozen=True)
class Retirement:
    """A group's turn to be sent back to its fallback, from `PlanStore.retirement`.

    Parameters
    ----------
    plan
        The published plan.
    """

    _connection: Connection
    plan: StoredPlan

    def epoch(self) -> int:
        """Return the epoch that the plan's version is of."""
        return epoch_of(self._connection, self.plan.group)

    def mark_retired(self, sent: Sent, *, reason: str, actor: str | None = None) -> None:
        """Record that it is said. Plans that wait end too: none is to follow it."""
        group, version = self.plan.group, self.plan.version
        close_open_plans(self._connection, {group: f"version {version} was retired"})
        record_event(self._connection, group, version, "retired", actor=actor, reason=reason)
        record_sent(self._connection, group, version, "retired", sent)


def epoch_of(connection: Connection, group: str) -> int:
    """Return the epoch of a group's next record; drawn where there was none, or a retirement.

    Epochs are milliseconds: one that is drawn is later than any before, also than those that a
    database which was lost or restored knows nothing of.
    """
    last = connection.execute(
        select(PlanTold.epoch, PlanTold.kind).where(PlanTold.group_id == group)
    ).one_or_none()
    if last is not None and last.kind == "plan":
        return int(last.epoch)
    return max(time.time_ns() // 1_000_000, last.epoch + 1 if last is not None else 0)


def record_sent(connection: Connection, group: str, version: int, kind: Kind, sent: Sent) -> None:
    """Record what stands in the plan topic now under a group's key."""
    said = {
        "kind": kind,
        "version": version,
        "epoch": sent.epoch,
        "lease_until": sent.lease_until,
        "topic": sent.topic,
        "partition": sent.partition,
        "record_offset": sent.offset,
    }
    new = insert(PlanTold).values(group_id=group, **said)
    connection.execute(
        new.on_conflict_do_update(
            index_elements=[PlanTold.group_id], set_={**said, "at": func.now()}
        )
    )
