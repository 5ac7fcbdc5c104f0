"""The warehouse: what is written is read back, whole or not at all."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fairlead.archive import LookArchive
from fairlead.domain.looks.look import look_of
from fairlead.domain.snapshot import GROUPS, MEMBERS, OFFSETS, GroupSnapshot, new_snapshot_id
from fairlead.spark.warehouse import Warehouse

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def snapshot_at(at: datetime) -> GroupSnapshot:
    """Return a snapshot of one group that reads one partition."""
    snapshot_id = new_snapshot_id(at)
    offsets = {
        "snapshot_id": snapshot_id,
        "snapshot_at": at,
        "group": "g",
        "topic": "t",
        "partition": 0,
        "begin_offset": 0,
        "end_offset": 5,
    }
    group = {"snapshot_id": snapshot_id, "snapshot_at": at, "group": "g", "cohort": "g"}
    return GroupSnapshot(
        snapshot_id=snapshot_id,
        snapshot_at=at,
        spread_s=0.0,
        offsets=pa.Table.from_pylist([offsets], OFFSETS),
        members=MEMBERS.empty_table(),
        groups=pa.Table.from_pylist([group], GROUPS),
    )


def test_tables_come_back_as_they_were_written(tmp_path: Path) -> None:
    """Values, types and time zones survive; the offsets are a look, and stand nowhere else."""
    warehouse, snapshot = Warehouse(str(tmp_path)), snapshot_at(NOON)
    warehouse.write_snapshot(snapshot)
    for name in ("members", "groups"):
        assert warehouse.load(name, snapshot.snapshot_id).equals(snapshot.tables[name])
    look = LookArchive(warehouse.path).look(snapshot.snapshot_id, NOON)
    assert look.equals(look_of(snapshot))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups", "looks", "members"]


@pytest.mark.spark
def test_spark_reads_what_was_written(tmp_path: Path, spark: SparkSession) -> None:
    """A table that went through Spark equals the one that did not."""
    warehouse, snapshot = Warehouse(str(tmp_path)), snapshot_at(NOON)
    warehouse.write_snapshot(snapshot)
    read = warehouse.read(spark, "groups", snapshot.snapshot_id).toArrow()
    assert read.cast(GROUPS).equals(snapshot.groups)


def test_a_table_in_parts_is_found_when_all_are_written(tmp_path: Path) -> None:
    """Not before, nor where a part fails; of a part that is written twice the last one counts."""
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
    with (
        pytest.raises(AssertionError),
        warehouse.in_parts("numbers", "s", schema) as parts,
    ):
        parts.write(0, rows(7, -1))
    assert warehouse.snapshots("numbers") == []
    with warehouse.in_parts("numbers", "s", schema) as parts:
        parts.write(0, rows())
    assert warehouse.load("numbers", "s").equals(schema.empty_table())


def test_an_unfinished_snapshot_is_none(tmp_path: Path) -> None:
    """A run that dies before the last table, or within a file, leaves nothing to be found."""
    warehouse, snapshot = Warehouse(str(tmp_path)), snapshot_at(NOON)
    warehouse.write("members", snapshot.snapshot_id, snapshot.members)
    (tmp_path / "groups" / snapshot.snapshot_id).mkdir(parents=True)
    (tmp_path / "groups" / snapshot.snapshot_id / "_part-0.parquet").write_bytes(b"PAR1")
    assert warehouse.snapshots() == []


def test_what_was_not_written_is_not_found(tmp_path: Path) -> None:
    """Reading a missing table names the table and the snapshot."""
    warehouse = Warehouse(str(tmp_path))
    assert warehouse.snapshots() == []
    with pytest.raises(FileNotFoundError, match="no table lag of s"):
        warehouse.load("lag", "s")


def test_pruning_removes_what_is_older_and_nothing_else(tmp_path: Path) -> None:
    """All tables of an old snapshot go, a later one stays whole; pruning again finds nothing."""
    warehouse = Warehouse(str(tmp_path))
    old, new = snapshot_at(NOON - timedelta(days=3)), snapshot_at(NOON)
    for snapshot in (old, new):
        warehouse.write_snapshot(snapshot)
    assert warehouse.prune(NOON - timedelta(days=2)) == [old.snapshot_id]
    assert warehouse.snapshots() == [new.snapshot_id]
    kept = [path.name for table in ("members", "groups") for path in (tmp_path / table).iterdir()]
    assert kept == [new.snapshot_id] * 2
    assert warehouse.prune(NOON - timedelta(days=2)) == []
