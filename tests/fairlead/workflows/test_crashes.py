"""What the next run makes of one that was killed, of a broker that is away, of a database that is.

The runs do everything that a planning run does to Postgres and to the plan topic. The whole
pipeline is killed in `tests/orchestration/test_crashes.py`.
"""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlead.errors import KafkaUnavailableError, StoreUnavailableError
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.postgres import Postgres
from fairlead.settings import KafkaSettings, Settings
from fairlead.store import PlanStore, StoredPlan, create_store_engine
from fairlead.wire.record import retired_value
from tests.cluster import QUIET_PROPERTIES
from tests.conftest import KafkaTopic
from tests.fairlead.workflows.crashing import PLANNING, RETIRING, die_at, plan, send_back, survive
from tests.lengths import LONG, form
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

#: Of each of what a crash can leave behind, the point that leaves most; all in the long form.
SHORT = {
    "plan half written",
    "decision committed",
    "after the fence",
    "intent committed",
    "inside the send",
    "after the send",
    "retirement uncommitted",
}
PLANNED = {point: PLANNING[point] for point in PLANNING if point in SHORT or LONG}
RETIRED = {point: RETIRING[point] for point in RETIRING if point in SHORT or LONG}

Approve = Callable[..., StoredPlan]
#: One after the other: they would fence each other before they come to their point.
AT_ONCE = 1
#: What is stored of a plan besides its document, one row of each.
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
    """Return the way to a plan topic of the test's own."""
    name = kafka_topic(config={"cleanup.policy": "compact"})
    return settings.kafka.model_copy(update={"plan_topic": name})


def kill_at(point: str, *run: Any, retiring: bool = False) -> None:
    """Run in a process of its own, which is killed at a point."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.fairlead.workflows.crashing"])
    process = context.Process(target=die_at, args=(point, *run), kwargs={"retiring": retiring})
    process.start()
    process.join(timeout=PATIENCE_S)
    assert process.exitcode == -signal.SIGKILL, point
    process.close()


def assert_whole(url: str, store: PlanStore, kafka: KafkaSettings, group: str) -> None:
    """Hold versions, what belongs to them, hashes and the topic's bytes against each other."""
    history = store.history(group)
    assert [row["version"] for row in history] == list(range(1, len(history) + 1))
    assert history[-1]["state"] == "published"
    assert {row["state"] for row in history[:-1]} <= {"expired", "stale", "superseded"}
    with psycopg.connect(url) as reader:
        for row in history:
            parts = reader.execute(PARTS, {"group": group, "version": row["version"]}).fetchall()
            assert sorted(parts) == [("decision",), ("moves",), ("predicted",)]
        measured = reader.execute(
            "SELECT count(*) FROM fairlead.lag_history WHERE group_id = %s GROUP BY snapshot_id",
            [group],
        )
        assert set(measured) == {(3,)}
    published = store.get(group, len(history))
    published.verify()
    with PlanTopic(kafka) as topic:
        record = topic.read(group)
    assert record is not None
    assert record.value == published.document
    assert record.position == (published.partition, published.record_offset)
    assert published.approved_sha256 == published.sha256


def test_the_run_after_a_killed_one_leaves_nothing_half_done(
    store_url: str, store: PlanStore, kafka: KafkaSettings
) -> None:
    """Killed before and after each transaction and each send: no gap, no half plan, those bytes."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda point: kill_at(point, store_url, kafka, point), PLANNED))
    left = {point: [row["state"] for row in store.history(point)] for point in PLANNED}
    assert left == {point: [state] if state else [] for point, state in PLANNED.items()}

    for group in PLANNED:
        plan(store_url, kafka, group, "s2", survive)
        assert_whole(store_url, store, kafka, group)


def test_a_retirement_that_was_killed_is_asked_for_again(
    store_url: str, store: PlanStore, kafka: KafkaSettings
) -> None:
    """Killed before and after its send and its transaction: a retirement is the last record."""

    def kill(point: str) -> None:
        kill_at(point, store_url, kafka, point, retiring=True)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(kill, RETIRED))
    for group, state in RETIRED.items():
        assert [row["state"] for row in store.history(group)] == [state]
        if state == "published":
            send_back(store_url, kafka, group, survive)
        assert [row["state"] for row in store.history(group)] == ["retired"]
        with PlanTopic(kafka) as topic:
            record = topic.read(group)
        assert record is not None
        assert record.value == retired_value(group, 1)


@pytest.mark.parametrize(
    "point",
    form(
        short=["plan half written", "adoption uncommitted"],
        long=[
            *("plan half written", "decision uncommitted"),
            *("after the fence", "adoption uncommitted"),
        ],
    ),
)
def test_postgres_may_crash_and_come_back_in_the_middle(
    own_postgres: Postgres, kafka: KafkaSettings, point: str
) -> None:
    """The run fails as one that is worth a retry; the next one leaves nothing half done."""
    url = own_postgres.url("fairlead")

    def restart(where: str) -> None:
        if where == point:
            own_postgres.kill()
            own_postgres.start()

    with pytest.raises(StoreUnavailableError):
        plan(url, kafka, "orders", "s1", restart)
    plan(url, kafka, "orders", "s2", survive)
    engine = create_store_engine(url)
    assert_whole(url, PlanStore(engine), kafka, "orders")
    engine.dispose()


def test_the_broker_may_crash_and_come_back_during_publication(
    own_services: Path, store_url: str, store: PlanStore, unique_name: str
) -> None:
    """The plan is on its way while the broker is away, and is published once it is there."""
    broker = KafkaBroker(own_services / "kafka", assignor=True)
    broker.start()
    try:
        kafka = KafkaSettings(
            bootstrap_servers=broker.bootstrap_servers,
            plan_topic=f"plans-{unique_name}",
            properties=QUIET_PROPERTIES,
            request_timeout_s=30.0,  # clock: it is waited out once, by who finds no broker
        )
        with PlanTopic(kafka) as topic:
            topic.ensure()

        def crash(where: str) -> None:
            if where == "before the send":
                broker.kill()

        with pytest.raises(KafkaUnavailableError):
            plan(store_url, kafka, "orders", "s1", crash)
        waiting = store.get("orders", 1)
        assert waiting.state == "sending"
        broker.start()
        patient = kafka.model_copy(update={"request_timeout_s": PATIENCE_S})
        plan(store_url, patient, "orders", "s2", survive)
        assert_whole(store_url, store, patient, "orders")
        assert store.get("orders", 1).sha256 == waiting.sha256
    finally:
        broker.stop()
