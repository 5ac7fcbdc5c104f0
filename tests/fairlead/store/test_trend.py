"""The lag history summed up, from Postgres."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine

from fairlead.store import PlanStore
from fairlead.store.trend import LagTrend, lag_trend
from tests.fairlead.store.conftest import SNAPSHOT_AT
from tests.fairlead.store.test_history import lag_table

pytestmark = pytest.mark.postgres


def test_trend_is_of_the_newest_snapshots_of_one_group(store: PlanStore, engine: Engine) -> None:
    """Oldest first, over midnight; another group's lag and older snapshots are left out."""
    times = [SNAPSHOT_AT + timedelta(hours=12 * step) for step in range(3)]
    for partitions, at in enumerate(times, 2):
        store.record_lag(lag_table(f"{at:%d%H}", at, "orders", "audit", partitions=partitions))
    store.record_lag(lag_table("later", times[-1] + timedelta(days=1), "audit"))

    found = lag_trend(engine, "orders", limit=2)

    assert found == LagTrend(at=tuple(times[1:]), total=(30.0, 60.0), heaviest=(20.0, 30.0))
    assert lag_trend(engine, "unknown") == LagTrend()
