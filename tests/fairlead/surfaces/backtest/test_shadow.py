"""The hourly replay of groups in shadow mode, which stores a row per day."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import Engine

from benchmarks.simulation.catalogue import SCENARIOS
from fairlead.archive import SampleArchive
from fairlead.domain.policy import Policy
from fairlead.domain.samples import SAMPLES, new_snapshot_id
from fairlead.store.shadow_plans import shadow_days
from fairlead.surfaces.backtest.shadow import replay_shadow_groups
from tests.fairlead.surfaces.backtest.recordings import recorded

pytestmark = pytest.mark.postgres
GROUPS = ("planned", "watched")


def test_day_of_samples_is_replayed_once_an_hour(tmp_path: Path, engine: Engine) -> None:
    """Plans would have saved most time lag; groups outside shadow mode have no replay."""
    recording, _ = recorded(SCENARIOS["skew"], hours=3)
    archive = SampleArchive(str(tmp_path))
    for row in recording.to_pylist():
        taken = pa.Table.from_pylist([row | {"group": group} for group in GROUPS], SAMPLES)
        archive.append(taken, new_snapshot_id(row["at"]))
    policies, now = (Policy(groups="watched", shadow=True),), row["at"]

    replay_shadow_groups(engine, archive, taken, policies, now)

    yesterday = now.date() - timedelta(days=1)
    (day,) = shadow_days(engine, "watched", yesterday)
    assert shadow_days(engine, "planned", yesterday) == []
    assert (day.day, day.until) == (now.date(), now)
    assert day.over_objective_s == pytest.approx(day.over_objective_recorded_s, rel=0.1)
    assert 0 < day.over_objective_planned_s < 0.4 * day.over_objective_s
    assert 1 <= day.plans <= 4
    assert day.downtime_s >= 10 * day.plans

    archive.append(taken, new_snapshot_id(now + timedelta(minutes=9)))
    replay_shadow_groups(engine, archive, taken, policies, now + timedelta(minutes=50))
    assert shadow_days(engine, "watched", yesterday) == [day]
