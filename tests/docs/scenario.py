"""The data of the documentation's examples: a week of the groups `orders` and `billing`.

Every run stores the same bytes. Belongs here: events in the groups, and people's actions.
The product computes everything else from simulated samples (`simulated`) and stores it. Belongs
elsewhere: the pages that show the week (`pages`).
"""

import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from sqlalchemy import text

from fairlead.domain.as_problem import planned
from fairlead.domain.policy import Policy
from fairlead.domain.samples.lag import LAG_HISTORY
from fairlead.spark.lag import lag_of
from fairlead.store.engine import create_store_engine
from fairlead.store.migrate import upgrade
from fairlead.store.outbox import Outbox, PublishRequest
from fairlead.store.plans import PlanStore
from fairlead.store.published_records import PublishedRecord
from fairlead.wire.document import PlanDocument, content_hash
from fairlead.workflows.adoption import check
from fairlead.workflows.diagnosing import diagnose
from fairlead.workflows.planning_one_group import plan_group
from fairlead.workflows.proposal import carry_out
from tests.docs.simulated import SimulatedGroup

MONDAY: Final = datetime(2026, 1, 5, tzinfo=UTC)
#: End of the week. A later time in the database is the real time of writing; `_Week` replaces it.
AFTERWARDS: Final = MONDAY + timedelta(days=7)
SETTINGS: Final = Path(__file__).with_name("fairlead.toml")
POLICIES: Final = tuple(
    Policy(**policy) for policy in tomllib.loads(SETTINGS.read_text())["policies"]
)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """Return a time of the week; day 0 is Monday."""
    return MONDAY + timedelta(days=day, hours=hour, minutes=minute)


def store_week(url: str) -> None:
    """Migrate an empty database and store the week in it."""
    upgrade(url)
    engine = create_store_engine(url)
    try:
        _orders(PlanStore(engine))
        _billing(PlanStore(engine))
    finally:
        engine.dispose()


def _orders(store: PlanStore) -> None:
    orders = SimulatedGroup(
        "orders",
        {"orders-1": 100, "orders-2": 100, "orders-3": 100},
        rates=(30, 12, 20, 15, 10, 5),
        costs=(1, 3, 1, 1, 1, 1),
        since=at(0, 7),
        reports=True,
    )
    week = _Week(store, orders)
    # orders-3 owns nothing yet, and two partitions have no owner.
    orders.assign({"orders-1": (0, 1), "orders-2": (2, 3)})
    week.plan(at(0, 8))  # the policy approves this plan
    week.publish(1, at(0, 8, 2))
    week.follow(1, at(0, 8, 5))
    week.check(at(0, 8, 10))
    week.sample(at(1, 6))
    orders.run(at(1, 8, 30))
    orders.rates = (60, 20, 40, 30, 10, 5)  # a sale begins
    week.plan(at(1, 9))
    week.approve(2, at(1, 9, 21), actor="kim", reason="agreed with the team")
    week.publish(2, at(1, 9, 22))
    week.check(at(1, 9, 25))
    week.follow(2, at(1, 9, 26))
    week.check(at(1, 9, 40))
    week.plan(at(1, 9, 45))
    week.sample(at(1, 18))
    orders.run(at(2, 8, 40))
    orders.rates = (40, 12, 60, 55, 10, 5)  # another sale begins
    week.plan(at(2, 9))
    week.reject(3, at(2, 11, 30), actor="lee", reason="not before the release")


def _billing(store: PlanStore) -> None:
    billing = SimulatedGroup(
        "billing",
        {"billing-1": 3.0, "billing-2": 3.0},
        rates=(0.8, 0.3),
        costs=(1, 1),
        since=at(1, 8),
        retention=timedelta(hours=1),
    )
    week = _Week(store, billing)
    billing.assign({"billing-1": (0, 1)})  # billing-2 is a standby
    week.plan(at(1, 9))
    billing.run(at(3, 4))
    billing.rates = (2.2, 1.6)  # the month's invoices are written
    week.plan(at(3, 9))


class _Week:
    """Stores the events of one group, with times in the week instead of the present time."""

    def __init__(self, store: PlanStore, group: SimulatedGroup) -> None:
        self._store, self._group, self._name = store, group, group.name
        self._kafka: Any = group  # has the methods of the gateway and the archive

    def sample(self, moment: datetime) -> None:
        """Sample the group, and store its diagnosis."""
        self._group.run(moment)
        names, store = [self._name], self._store
        memory = replace(store.memories(names), costs={})
        seen = self._group.snapshot().samples
        diagnosed = diagnose(self._kafka, [seen], POLICIES, memory)
        store.record_findings(diagnosed.findings, diagnosed.requests)

    def plan(self, moment: datetime) -> None:
        """Sample the group, measure its lag, and decide, a minute later, whether to plan."""
        self.sample(moment)
        name, store = self._name, self._store
        before = self._group.read(moment - LAG_HISTORY, moment)
        samples = pa.concat_tables([before, self._group.snapshot().samples])
        store.record_lag(lag_of({name: samples}))
        memory = replace(store.memories([name]), costs={})
        done = plan_group(
            self._kafka, self._kafka, name, policies=POLICIES, memory=memory, now=moment
        )
        carry_out(store, [done.decision], POLICIES, moment)
        self._date(moment + timedelta(minutes=1))

    def approve(self, version: int, moment: datetime, *, actor: str, reason: str) -> None:
        """Store a person's approval of a version."""
        sha256 = self._store.get(self._name, version).sha256
        self._store.approve(self._name, version, sha256=sha256, actor=actor, reason=reason)
        self._date(moment)

    def reject(self, version: int, moment: datetime, *, actor: str, reason: str) -> None:
        """Store a person's rejection of a version."""
        self._store.reject(self._name, version, actor=actor, reason=reason)
        self._date(moment)

    def publish(self, version: int, moment: datetime) -> None:
        """Store that an approved version was sent."""
        outbox, until = Outbox(self._store.engine), at(31, 0)
        with outbox.turn("fairlead.plans", 0) as turn:
            (entry,) = turn.add([PublishRequest(self._name, version, lease_until=until)])
        record = PublishedRecord(1, until, "fairlead.plans", 0, version + 40)
        outbox.confirm({self._name: (entry, record)})
        self._date(moment)

    def follow(self, version: int, moment: datetime) -> None:
        """Let the members take over the partitions that a version of the plan gives them."""
        self._group.run(moment)
        shares = planned(self._store.get(self._name, version).verify())
        self._group.assign({name: share[self._name] for name, share in shares.items()})

    def check(self, moment: datetime) -> None:
        """Compare the members' partitions with the published plan and store the result."""
        self._group.run(moment)
        check(self._store, [self._name], self._group.live, wait_s=0.0)

    def _date(self, moment: datetime) -> None:
        """In new rows, replace the real time by the given time, and a plan's id by a fixed id."""
        times = {"group": self._name, "moment": moment, "afterwards": AFTERWARDS}
        with self._store.engine.begin() as connection:
            connection.execute(_AS_REPLICA)  # disables triggers, which would refuse changes
            for version, stored in connection.execute(_NEW_PLANS, times).all():
                plan_id = UUID(bytes=f"{self._name:>14}{version:02}".encode())
                document = replace(
                    PlanDocument.from_bytes(bytes(stored), group=self._name),
                    plan_id=str(plan_id),
                    created_at=moment,
                ).to_bytes()
                new = {"version": version, "document": document, "sha256": content_hash(document)}
                connection.execute(_PLAN, times | new | {"plan_id": plan_id})
                connection.execute(_HASH, times | new)
            connection.execute(_EVENTS, times)
            connection.execute(_DECISIONS, times)


_AS_REPLICA: Final = text("SET LOCAL session_replication_role = replica")
_NEW_PLANS: Final = text("""
    SELECT version, document FROM fairlead_raw.plan
    WHERE group_id = :group AND created_at > :afterwards
""")
_PLAN: Final = text("""
    UPDATE fairlead_raw.plan
    SET plan_id = :plan_id, created_at = :moment, document = :document, sha256 = :sha256
    WHERE group_id = :group AND version = :version
""")
_HASH: Final = text("""
    UPDATE fairlead_raw.plan_event SET sha256 = :sha256
    WHERE group_id = :group AND version = :version
""")
_EVENTS: Final = text("""
    UPDATE fairlead_raw.plan_event
    SET at = :moment,
        actor = CASE actor WHEN session_user THEN 'planner' ELSE actor END,
        database_user = CASE WHEN actor IN ('kim', 'lee') THEN actor ELSE 'planner' END
    WHERE at > :afterwards
""")
_DECISIONS: Final = text("""
    UPDATE fairlead_raw.decision SET decided_at = :moment WHERE decided_at > :afterwards
""")
