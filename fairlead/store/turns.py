"""A group's turn: what publishers record while they hold the group's lock.

Belongs here: the transitions that go with something sent to Kafka. Does not: taking the lock and
committing (`plans`), sending (`fairlead.plans.publication`, `fairlead.plans.retirement`).
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from fairlead.errors import PlanStateError
from fairlead.store.models import Plan
from fairlead.store.queries import close_open_plans, find_plans, record_event
from fairlead.store.records import StoredPlan


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

    def mark_published(
        self, *, topic: str, partition: int, offset: int, actor: str | None = None
    ) -> None:
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
            reason=f"sent to {topic}-{partition} at offset {offset}",
            topic=topic,
            partition=partition,
            record_offset=offset,
        )

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
class Retirement:
    """A group's turn to be sent back to its fallback, from `PlanStore.retirement`.

    Parameters
    ----------
    plan
        The published plan.
    """

    _connection: Connection
    plan: StoredPlan

    def mark_retired(self, *, reason: str, actor: str | None = None) -> None:
        """Record that the tombstone is sent. Plans that wait end too: none is to follow it."""
        group, version = self.plan.group, self.plan.version
        close_open_plans(self._connection, {group: f"version {version} was retired"})
        record_event(self._connection, group, version, "retired", actor=actor, reason=reason)
