"""The warehouse: written data is read back completely or not at all."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fairlead.domain.samples import SAMPLES, GroupSnapshot, new_snapshot_id
from fairlead.spark.warehouse import Recent, Warehouse
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def snapshot_at(at: datetime) -> GroupSnapshot:
    """Return a snapshot of one group that reads one partition."""
    snapshot_id = new_snapshot_id(at)
    row = {
        "sample_id": snapshot_id,
        "at": at,
        "topics": ["t"],
        "counts": [1],
        "begin": [0],
        "end": [5],
    }
    return GroupSnapshot(snapshot_id, at, 0.0, samples(row))


def test_snapshot_is_read_back_unchanged(tmp_path: Path) -> None:
    """Values, types and time zones stay the same; samples are in a separate table."""
    warehouse, snapshot = Warehouse(str(tmp_path)), snapshot_at(NOON)
    warehouse.write_snapshot(snapshot, {"g": "fleet"})
    assert warehouse.load("groups", snapshot.snapshot_id).to_pylist() == [
        {"group": "g", "cohort": "fleet", "snapshot_at": NOON}
    ]
    recent = Recent(snapshot.snapshot_id, NOON, ("g",))
    assert warehouse.samples(recent).equals(snapshot.samples)
    with pytest.raises(FileNotFoundError, match="was removed or cannot be read"):
        warehouse.samples(Recent(snapshot.snapshot_id, NOON, ("g", "h")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups", "samples"]
    assert warehouse.snapshot_ids() == [snapshot.snapshot_id]


@pytest.mark.spark
def test_spark_reads_the_table_of_samples(tmp_path: Path, spark: SparkSession) -> None:
    """Spark reads the samples' Parquet files with the types, values and nulls that were written."""
    warehouse, snapshot = Warehouse(str(tmp_path)), snapshot_at(NOON)
    warehouse.write_snapshot(snapshot, {})
    read = spark.read.parquet(f"{tmp_path}/samples/*/*.parquet").toArrow()
    assert read.cast(SAMPLES).equals(snapshot.samples)


def test_table_is_found_once_all_its_parts_are_written(tmp_path: Path) -> None:
    """No table is found if a part fails; if a part is written twice, the second one is read."""
    warehouse = Warehouse(str(tmp_path))
    schema = pa.schema({"number": pa.int64()})

    def rows(*numbers: int) -> Iterator[pa.RecordBatch]:
        for number in numbers:
            yield pa.record_batch({"number": [number]}, schema)
            assert number >= 0

    with warehouse.in_parts("numbers", "s", schema) as parts:
        parts.write(1, rows(4, 5))
        parts.write(0, rows(1))
        parts.write(0, rows(1, 2, 3))
        assert warehouse.snapshots("numbers") == []
    assert warehouse.load("numbers", "s")["number"].to_pylist() == [1, 2, 3, 4, 5]
    with pytest.raises(AssertionError), warehouse.in_parts("numbers", "s", schema) as parts:
        parts.write(0, rows(7, -1))
    assert warehouse.snapshots("numbers") == []
    with warehouse.in_parts("numbers", "s", schema) as parts:
        parts.write(0, rows())
    assert warehouse.load("numbers", "s").equals(schema.empty_table())


def test_pruning_removes_only_old_snapshots(tmp_path: Path) -> None:
    """All tables of the old snapshot are deleted; all tables of the new snapshot are kept."""
    warehouse = Warehouse(str(tmp_path))
    old, new = snapshot_at(NOON - timedelta(days=3)), snapshot_at(NOON)
    for snapshot in (old, new):
        warehouse.write_snapshot(snapshot, {})
        warehouse.write("lag", snapshot.snapshot_id, snapshot.samples)
    assert warehouse.prune(NOON - timedelta(days=2)) == [old.snapshot_id]
    assert warehouse.snapshots() == [new.snapshot_id]
    kept = [path.name for table in ("lag", "groups") for path in (tmp_path / table).iterdir()]
    assert kept == [new.snapshot_id] * 2
    assert warehouse.prune(NOON - timedelta(days=2)) == []
