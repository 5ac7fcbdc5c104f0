"""Retention of lag history: whole days go, and nothing else."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

from fairlead.errors import StoreUnavailableError
from fairlead.store import PlanStore
from fairlead.store.engine import transaction
from fairlead.store.prune import lag_days, prune
from tests.fairlead.store.test_history import lag_table, query

pytestmark = pytest.mark.postgres

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)


@pytest.fixture
def three_days(store: PlanStore) -> PlanStore:
    """Return a store with a snapshot at noon on each of three days."""
    for number in range(3):
        store.record_lag(lag_table(f"s{number}", NOON + timedelta(days=number), "a", "b"))
    return store


def test_whole_days_before_the_moment_go(three_days: PlanStore, engine: Engine) -> None:
    """The day of the moment itself stays, also what lies before the moment on it."""
    assert three_days
    gone = prune(engine, NOON + timedelta(days=2, hours=3))
    assert [day.day for day in gone] == [date(2026, 1, 10), date(2026, 1, 11)]
    assert all(day.bytes > 0 for day in gone)
    assert [day.day for day in lag_days(engine)] == [date(2026, 1, 12)]
    left = query(engine, "SELECT DISTINCT snapshot_id FROM fairlead.lag_history")
    assert left == query(engine, "SELECT DISTINCT snapshot_id FROM fairlead_raw.lag_snapshot")
    assert left == [{"snapshot_id": "s2"}]


def test_pruned_snapshot_can_be_stored_again(three_days: PlanStore, engine: Engine) -> None:
    """What makes storing twice do nothing has gone with the rows."""
    prune(engine, NOON + timedelta(days=1))
    assert three_days.record_lag(lag_table("s0", NOON, "a", "b")) == 4
    assert three_days.record_lag(lag_table("s0", NOON, "a", "b")) == 0


def test_days_are_divided_at_midnight_utc(store: PlanStore, engine: Engine) -> None:
    """Whatever the time zone of the session."""
    midnight = datetime(2026, 1, 10, tzinfo=UTC)
    store.record_lag(lag_table("before", midnight - timedelta(microseconds=1), "a"))
    store.record_lag(lag_table("after", midnight, "a"))
    with transaction(engine) as connection:
        connection.execute(text("SET TIME ZONE 'Asia/Tokyo'"))
        connection.execute(text("SELECT fairlead_raw.ensure_lag_day('2026-01-11')"))
    assert [day.day for day in lag_days(engine)] == [date(2026, 1, n) for n in (9, 10, 11)]
    prune(engine, midnight)
    assert query(engine, "SELECT DISTINCT snapshot_id FROM fairlead.lag_history") == [
        {"snapshot_id": "after"}
    ]


def test_writers_and_prunes_at_once_go_on(store: PlanStore, engine: Engine) -> None:
    """Four groups begin the same new days while old ones are dropped: none twice, no row lost."""
    for number in range(1, 6):
        store.record_lag(lag_table(f"old{number}", NOON - timedelta(days=number), "a"))

    def write(group: str) -> int:
        return sum(
            store.record_lag(lag_table(f"s{number}", NOON + timedelta(days=number), group))
            for number in range(5)
        )

    with ThreadPoolExecutor(6) as pool:
        prunes = [
            pool.submit(prune, engine, NOON - timedelta(days=5 - number)) for number in range(1, 6)
        ]
        assert list(pool.map(write, "abcd")) == [10] * 4
        gone = [day.day for one in prunes for day in one.result()]
    assert sorted(gone) == [date(2026, 1, number) for number in range(5, 10)]
    assert [day.day for day in lag_days(engine)] == [date(2026, 1, n) for n in range(10, 15)]
    assert query(engine, "SELECT count(*) FROM fairlead.lag_history") == [{"count": 40}]


def test_reader_that_does_not_end_keeps_everything(three_days: PlanStore, engine: Engine) -> None:
    """Nothing is dropped, and nobody waits behind the attempt for ever."""
    assert three_days
    with transaction(engine) as reading:
        reading.execute(text("SELECT count(*) FROM fairlead_raw.partition_lag"))
        with transaction(engine) as connection:
            connection.execute(text("ALTER FUNCTION fairlead.prune_lag SET lock_timeout = '50ms'"))
        with pytest.raises(StoreUnavailableError, match="lock timeout"):
            prune(engine, NOON + timedelta(days=2))
    assert len(lag_days(engine)) == 3
