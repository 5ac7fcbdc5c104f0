"""State after a planning run was killed or frozen, or after the broker or database crashed.

The runs do all steps on Postgres and the plan topic.
"""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from fairlead.domain.reconciliation import Action
from fairlead.domain.records import StoredPlan
from fairlead.errors import KafkaUnavailableError, StoreUnavailableError
from fairlead.followers.core.plan_cache import PlanCache, PlanRecord
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.postgres import Postgres
from fairlead.settings import KafkaSettings, Settings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.wire.record import withdrawn_value
from fairlead.workflows.differences import differences
from fairlead.workflows.publication import publish_groups
from tests.cluster import QUIET_PROPERTIES
from tests.conftest import KafkaTopic
from tests.fairlead.workflows.crashing import PLANNING, WITHDRAWAL, plan, start
from tests.lengths import LONG, form
from tests.records import newest_record
from tests.stored import plan_history
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Approve = Callable[..., StoredPlan]
#: Crash points that leave the most unfinished work; the long form of the tests uses all points.
SHORT = {
    *("plan half written", "decision committed", "after the fence", "entry committed"),
    *("inside the send", "after the send", "withdrawal: after the send"),
}
POINTS = {
    point: state for point, state in (PLANNING | WITHDRAWAL).items() if point in SHORT or LONG
}
#: If a run is frozen at one of these points, later runs finish before the frozen run sends a plan
#: or records the result.
FREEZES = form(
    short=["after the fence", "entry committed", "inside the send", "after the send"],
    long=list(PLANNING | WITHDRAWAL),
)
#: Query that returns one row for each kind of data that is stored with a version's document.
PARTS = """
    SELECT 'moves' FROM fairlead_raw.moved_partition
    WHERE group_id = %(group)s AND version = %(version)s
    UNION ALL
    SELECT 'decision' FROM fairlead.decision WHERE group_id = %(group)s AND version = %(version)s
    UNION ALL
    SELECT kind FROM fairlead_raw.balance
    WHERE group_id = %(group)s AND version = %(version)s AND kind = 'predicted'
"""


@pytest.fixture
def kafka(settings: Settings, kafka_topic: KafkaTopic) -> KafkaSettings:
    """Return Kafka's settings with a plan topic that only this test uses."""
    name = kafka_topic(config={"cleanup.policy": "compact"})
    return settings.kafka.model_copy(update={"plan_topic": name})


def assert_whole(url: str, kafka: KafkaSettings, group: str) -> None:
    """Check that versions are complete, and that a new plan follower gets the published plan."""
    engine = create_store_engine(url)
    store = PlanStore(engine)
    history = plan_history(store, group)
    assert [row["version"] for row in history] == list(range(1, len(history) + 1)), group
    assert history[-1]["state"] == "published", group
    assert {row["state"] for row in history[:-1]} <= {"expired", "stale", "superseded", "withdrawn"}
    with psycopg.connect(url) as reader:
        for row in history:
            parts = reader.execute(PARTS, {"group": group, "version": row["version"]}).fetchall()
            assert sorted(parts) == [("decision",), ("moves",), ("predicted",)], group
        measured = reader.execute(
            "SELECT count(*) FROM fairlead.lag_history WHERE group_id = %s GROUP BY snapshot_id",
            [group],
        )
        assert set(measured) == {(3,)}
    published = store.get(group, len(history))
    published.verify()
    assert published.approved_sha256 == published.sha256
    assert store.outbox().outstanding([group]) == []
    with PlanTopic(kafka) as topic:
        assert differences(store, [group], topic=topic, verifier=None) == [], group
        record, cache = newest_record(topic, group), PlanCache(group, topic.origin, None)
    assert record.value == published.document
    assert record.position == (published.partition, published.record_offset)
    cache.apply(PlanRecord(0, group.encode(), record.value, tuple(record.headers)))
    assert cache.state.plan is not None
    assert cache.state.plan.version == published.version
    engine.dispose()


def test_next_run_completes_a_killed_one(
    migrated: str, store: PlanStore, kafka: KafkaSettings
) -> None:
    """After a kill at any crash point, the next run completes the plan or the withdrawal.

    No version is missing afterwards.
    """
    for point in POINTS:
        process = start(point, signal.SIGKILL, migrated, kafka, point)
        process.join(timeout=PATIENCE_S)
        assert process.exitcode == -signal.SIGKILL, point
    left = {point: [row["state"] for row in plan_history(store, point)] for point in POINTS}
    assert left == {point: [state] if state else [] for point, state in POINTS.items()}

    for point in POINTS:
        plan(migrated, kafka, point, "s2")
        if store.published(point) is None:  # the next run has completed a withdrawal
            with PlanTopic(kafka) as topic:
                assert newest_record(topic, point).value == withdrawn_value(point, 1)
            plan(migrated, kafka, point, "s3")
        assert_whole(migrated, kafka, point)


@pytest.mark.parametrize("point", FREEZES)
def test_frozen_run_does_not_undo_later_runs(
    migrated: str, kafka: KafkaSettings, point: str
) -> None:
    """A frozen run that continues after other runs does not change their results.

    Postgres ends the session of a frozen publisher that holds a lock.
    """
    frozen = start(point, signal.SIGSTOP, migrated, kafka, "orders")
    try:
        assert frozen.pid is not None
        stat = Path(f"/proc/{frozen.pid}/stat")
        eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] in "TZ", "it stops")
        with psycopg.connect(migrated, autocommit=True) as superuser:
            superuser.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND state = 'idle in transaction'"
            )
        for snapshot in ("s2", "s3"):
            plan(migrated, kafka, "orders", snapshot)
        os.kill(frozen.pid, signal.SIGCONT)
        frozen.join(PATIENCE_S)
        assert frozen.exitcode == 0, point
    finally:
        frozen.kill()  # if the test failed while the process is frozen
        frozen.join()
    plan(migrated, kafka, "orders", "s4")
    assert_whole(migrated, kafka, "orders")


@pytest.mark.parametrize(
    "point",
    form(
        short=["plan half written"],
        long=[
            "plan half written",
            "decision uncommitted",
            "after the fence",
            "adoption uncommitted",
        ],
    ),
)
def test_crash_of_postgres_during_a_run(
    own_postgres: Postgres, kafka: KafkaSettings, point: str
) -> None:
    """If Postgres crashes, a run fails with a transient error; the next run completes the work."""
    url = own_postgres.url("fairlead")

    def restart(where: str) -> None:
        if where == point:
            own_postgres.kill()
            own_postgres.start()

    with pytest.raises(StoreUnavailableError):
        plan(url, kafka, "orders", "s1", restart)
    plan(url, kafka, "orders", "s2")
    assert_whole(url, kafka, "orders")


@pytest.fixture(scope="module")
def broker(own_services: Path) -> Iterator[KafkaBroker]:
    """Return a broker for this module that tests may kill."""
    broker = KafkaBroker(own_services / "kafka", assignor=True)
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def killable(broker: KafkaBroker, unique_name: str) -> KafkaSettings:
    """Return settings of that broker, with a plan topic that only this test uses."""
    kafka = KafkaSettings(
        bootstrap_servers=broker.bootstrap_servers,
        plan_topic=f"plans-{unique_name}",
        properties=QUIET_PROPERTIES,
        request_timeout_s=30.0,  # clock: how long a publication waits for the broker
    )
    with PlanTopic(kafka.model_copy(update={"request_timeout_s": PATIENCE_S})) as topic:
        topic.ensure()
    return kafka


def test_crash_of_the_broker_during_publication(
    broker: KafkaBroker, killable: KafkaSettings, migrated: str, store: PlanStore
) -> None:
    """If the broker crashes, a plan stays in state "sending" until the next run publishes it."""

    def crash(where: str) -> None:
        if where == "before the send":
            broker.kill()

    with pytest.raises(KafkaUnavailableError):
        plan(migrated, killable, "orders", "s1", crash)
    waiting = store.get("orders", 1)
    assert waiting.state == "sending"
    broker.start()
    patient = killable.model_copy(update={"request_timeout_s": PATIENCE_S})
    plan(migrated, patient, "orders", "s2")
    assert_whole(migrated, patient, "orders")
    assert store.get("orders", 1).sha256 == waiting.sha256


class Restart(logging.Handler):
    """A log handler that starts a broker when the first attempt of a publication fails."""

    def __init__(self, broker: KafkaBroker) -> None:
        super().__init__()
        self._broker, self.warnings = broker, list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """Record the warning and start the broker."""
        self.warnings.append(record.getMessage())
        self._broker.start()


def test_publication_succeeds_after_a_restart_of_the_broker(
    broker: KafkaBroker, killable: KafkaSettings, store: PlanStore, approve: Approve
) -> None:
    """If the broker restarts during a publication, a second attempt with new clients succeeds."""
    approve(group="absent")
    patient = killable.model_copy(update={"request_timeout_s": PATIENCE_S})
    handler, log = Restart(broker), logging.getLogger("fairlead.workflows.publication")
    log.addHandler(handler)
    broker.kill()
    try:
        _, done = publish_groups(store, ["absent"], Settings(kafka=patient))
    finally:
        log.removeHandler(handler)
    assert [warning.partition(":")[0] for warning in handler.warnings] == [
        "Trying once more with new clients"
    ]
    assert [(result.group, result.action) for result in done] == [("absent", Action.DISCARD)]
    assert store.get("absent", 1).state == "stale"
