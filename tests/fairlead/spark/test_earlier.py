"""What lag looks back on: looks, taken apart."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fairlead.kafka.snapshot import new_snapshot_id
from fairlead.looks.archive import LookArchive
from fairlead.looks.look import LOOKS
from fairlead.spark.earlier import ROWS, earlier_offsets

pytestmark = pytest.mark.spark
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def archive(tmp_path: Path) -> LookArchive:
    """Return an archive on a path of its own."""
    return LookArchive(str(tmp_path))


def remember(archive: LookArchive, minutes: float, group: str = "g") -> None:
    """Write down a look at two topics, so many minutes before noon."""
    at = NOON - timedelta(minutes=minutes)
    row = {
        "group": group,
        "at": at,
        "topics": ["s", "t"],
        "counts": [1, 2],
        "begin": [0, 0, -1],
        "end": [10, 20, -1],
        "committed": [-1, 15, 5],
        "members": [],
        "owner": [-1, -1, -1],
    }
    archive.append(pa.Table.from_pylist([row], LOOKS), new_snapshot_id(at))


def ages(
    spark: SparkSession, archive: LookArchive, partitions: int = 3, group: str = "g"
) -> list[float]:
    """Return how many minutes before noon the looks were taken that are read, newest first."""
    found = earlier_offsets(spark, archive, NOON, partitions)
    assert found is not None
    rows = found.where(f"`group` = '{group}'").select("snapshot_at").distinct().toArrow()
    return sorted((NOON - at).total_seconds() / 60 for at in rows["snapshot_at"].to_pylist())


def test_a_look_is_a_row_a_partition(spark: SparkSession, archive: LookArchive) -> None:
    """With offsets as a snapshot has them: what is not known is null."""
    remember(archive, 1)
    found = earlier_offsets(spark, archive, NOON, 3)
    assert found is not None
    rows = found.select("topic", "partition", "begin_offset", "end_offset", "committed_offset")
    assert sorted(tuple(row) for row in rows.collect()) == [
        ("s", 0, 0, 10, None),
        ("t", 0, 0, 20, 15),
        ("t", 1, None, None, 5),
    ]


def test_looks_of_the_last_hour_are_read_once(spark: SparkSession, archive: LookArchive) -> None:
    """The snapshot itself, which is among the looks, is not."""
    for minutes in (0, 1, 1, 5, 59, 61, 200):
        remember(archive, minutes)
    assert ages(spark, archive) == [1, 5, 59]


def test_rare_looks_are_looked_back_on_further(spark: SparkSession, archive: LookArchive) -> None:
    """A cadence of hours loses neither rates nor statuses; what is older than a day is."""
    for minutes in (90, 360, 720, 1500):
        remember(archive, minutes)
    assert ages(spark, archive) == [90, 360]


def test_of_a_fleet_fewer_looks_are_read(spark: SparkSession, archive: LookArchive) -> None:
    """Evenly apart, the newest among them; never fewer than two."""
    for minutes in range(1, 60):
        remember(archive, minutes)
    assert ages(spark, archive, ROWS // 6) == [1, 11, 21, 31, 41, 51]
    assert len(ages(spark, archive, 100 * ROWS)) == 2


def test_without_looks_there_is_nothing(spark: SparkSession, archive: LookArchive) -> None:
    """The first planning run of all."""
    assert earlier_offsets(spark, archive, NOON, 3) is None
