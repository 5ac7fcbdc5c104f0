"""Finding the snapshots that a step works on, by cohort (groups that are planned together)."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead.domain.samples import GroupSnapshot
from fairlead.spark.warehouse import Recent, Warehouse
from tests.samples import samples

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVENING = datetime(2026, 1, 1, 18, tzinfo=UTC)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Return an empty warehouse."""
    return Warehouse(str(tmp_path))


def keep(warehouse: Warehouse, minute: int, cohorts: dict[str, str], *tables: str) -> Recent:
    """Store a snapshot and its `tables`; `cohorts` maps groups to cohorts. Return a reference."""
    at = NOON + timedelta(minutes=minute)
    snapshot_id = f"{at:%Y%m%dT%H%M%S}.000000Z-00000000"
    names = sorted(cohorts)
    rows = samples(*({"group": name, "at": at, "topics": [], "counts": []} for name in names))
    warehouse.write_snapshot(GroupSnapshot(snapshot_id, at, 0.0, rows), cohorts)
    for table in tables:
        warehouse.write(table, snapshot_id, rows)
    return Recent(snapshot_id, at, tuple(sorted(cohorts)))


def test_snapshot_without_the_table_is_ignored(warehouse: Warehouse) -> None:
    """After a killed run, a step works on the last complete snapshot."""
    whole = keep(warehouse, 1, {"a": "a"}, "lag")
    keep(warehouse, 2, {"a": "a"})
    assert warehouse.newest(["a"], "lag", EVENING) == [whole]


def test_groups_of_other_cohorts_are_left_out(warehouse: Warehouse) -> None:
    """Only the groups of the requested cohort are returned, in the order of their names."""
    keep(warehouse, 1, {"b": "fleet", "a": "fleet", "c": "c"})
    (found,) = warehouse.newest(["fleet"], "groups", EVENING)
    assert found.groups == ("a", "b")


def test_each_cohort_is_found_in_its_own_snapshot(warehouse: Warehouse) -> None:
    """If cohorts were sampled separately, a run uses several snapshots, the oldest first."""
    of_a = keep(warehouse, 1, {"a": "a"})
    keep(warehouse, 2, {"b": "b"})
    of_b = keep(warehouse, 3, {"b": "b"})
    assert warehouse.newest(["b", "a"], "groups", EVENING) == [of_a, of_b]


def test_snapshot_with_a_future_time_is_ignored(warehouse: Warehouse) -> None:
    """A snapshot dated tomorrow is not used; otherwise, it would be the newest one for a day."""
    real = keep(warehouse, 1, {"a": "a"})
    keep(warehouse, 24 * 60, {"a": "a"})
    assert warehouse.newest(["a"], "groups", NOON + timedelta(minutes=1)) == [real]


def test_snapshot_of_a_run_is_found_by_its_id(warehouse: Warehouse) -> None:
    """Groups that the caller's filter refuses are left out; without the table, nothing is found."""
    mine = keep(warehouse, 1, {"a": "a", "b": "b"}, "lag")
    keep(warehouse, 2, {"a": "a"}, "lag")
    assert warehouse.of_groups(mine.snapshot_id, "lag", lambda *_: True) == [mine]
    (found,) = warehouse.of_groups(mine.snapshot_id, "lag", lambda group, _: group == "b")
    assert found.groups == ("b",)
    assert warehouse.of_groups(mine.snapshot_id, "candidates", lambda *_: True) == []
