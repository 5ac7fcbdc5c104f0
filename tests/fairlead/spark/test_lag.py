"""Lag of a snapshot, computed in Spark, and the samples from which rates are computed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fairlead.archive import SampleArchive
from fairlead.domain.samples import GroupSnapshot, new_snapshot_id
from fairlead.spark.lag import LAG, write_lag
from fairlead.spark.warehouse import Warehouse
from tests.samples import samples

pytestmark = pytest.mark.spark
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SNAPSHOT = new_snapshot_id(NOON)
NOW: dict[str, Any] = {"snapshot_id": SNAPSHOT, "snapshot_at": NOON}
#: Partitions of the snapshot: s-0, t-0, and t-1, whose log offsets could not be read.
TOPICS: dict[str, Any] = {"topics": ["s", "t"], "counts": [1, 2]}
OFFSETS = {"begin": [0, 0, -1], "end": [36_000, 72_000, -1], "committed": [-1, 54_000, 5]}


def write(warehouse: Warehouse, groups: Sequence[str], **columns: Any) -> None:
    """Write a snapshot with equal rows for all groups; `columns` change the last group's row."""
    rows = [
        {"group": group, "sample_id": SNAPSHOT, "at": NOON, **TOPICS, **OFFSETS} for group in groups
    ]
    table = samples(*rows[:-1], *(row | columns for row in rows[-1:]))
    warehouse.write_snapshot(GroupSnapshot(SNAPSHOT, NOON, 0.0, table), {})


def remember(warehouse: Warehouse, minutes: float, arrived: int, group: str = "g") -> None:
    """Write a sample taken `minutes` before noon; until noon, `arrived` more records arrive."""
    at = NOON - timedelta(minutes=minutes)
    row = TOPICS | OFFSETS | {"group": group, "at": at, "end": [36_000, 72_000 - arrived, -1]}
    SampleArchive(warehouse.path).append(samples(row), new_snapshot_id(at))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Return an empty warehouse."""
    return Warehouse(str(tmp_path))


def measured(spark: SparkSession, warehouse: Warehouse) -> list[dict[str, Any]]:
    """Compute the snapshot's lag; return its rows, sorted by group and topic."""
    write_lag(spark, warehouse, SNAPSHOT)
    lag = warehouse.load("lag", SNAPSHOT)
    assert lag.schema == LAG
    rows: list[dict[str, Any]] = lag.sort_by(
        [("group", "ascending"), ("topic", "ascending")]
    ).to_pylist()
    return rows


def test_a_row_for_each_readable_partition(spark: SparkSession, warehouse: Warehouse) -> None:
    """An unreadable partition has no row; without earlier samples, rates are null."""
    write(warehouse, ["g"])
    assert measured(spark, warehouse) == [
        {
            **NOW,
            "group": "g",
            "topic": topic,
            "partition": 0,
            "begin_offset": 0,
            "end_offset": end,
            "committed_offset": committed,
            "lag": end - (committed or 0),
            "lost": 0,
            "lost_at": None,
            "member": None,
            "arrival_rate": None,
            "consumption_rate": None,
            "time_lag_s": None,
            "status": "OK",
        }
        for topic, end, committed in (("s", 36_000, None), ("t", 72_000, 54_000))
    ]


def test_owner_is_named(spark: SparkSession, warehouse: Warehouse) -> None:
    """The owner is null if no member owns the partition, or if claims contradict each other."""
    write(warehouse, ["g"], members=["one", "two"], owner=[1, 0, 0])
    assert [row["member"] for row in measured(spark, warehouse)] == ["two", "one"]
    write(warehouse, ["g"], members=["one", "two"], owner=[1, -1, 0])
    assert [row["member"] for row in measured(spark, warehouse)] == ["two", None]


def test_topic_that_a_group_has_left_has_no_status(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    """A topic to which no member subscribes has no status, unless the group has no members."""
    write(warehouse, ["empty", "g"], members=["m"], subscriptions=[["t"]])
    found = [(row["group"], row["topic"], row["status"]) for row in measured(spark, warehouse)]
    assert found == [("empty", "s", "OK"), ("empty", "t", "OK"), ("g", "s", None), ("g", "t", "OK")]


def test_loss_has_the_time_of_its_first_sample(spark: SparkSession, warehouse: Warehouse) -> None:
    """`lost_at` is the time of the first sample in which the commit was below the log start."""
    write(warehouse, ["g"])
    archive = SampleArchive(warehouse.path)
    at = NOON - timedelta(minutes=15)
    row = {
        "group": "g",
        "at": at,
        "topics": ["t"],
        "counts": [1],
        "begin": [60_000],
        "end": [72_000],
        "committed": [54_000],
    }
    archive.append(samples(row), new_snapshot_id(at))
    (_, lossy) = measured(spark, warehouse)
    assert (lossy["lost"], lossy["lost_at"], lossy["status"]) == (6_000, at, "DATA_LOSS")


def test_samples_of_the_last_hour_are_used(spark: SparkSession, warehouse: Warehouse) -> None:
    """Rates use samples of the last hour. Duplicate samples change nothing."""
    write(warehouse, ["g"])
    remember(warehouse, 200, 70_000)
    for minutes in (50, 25, 25, 0):
        remember(warehouse, minutes, 600 * minutes)  # 10 a second
    assert measured(spark, warehouse)[1]["arrival_rate"] == pytest.approx(10.0)
    assert measured(spark, warehouse)[1]["time_lag_s"] == pytest.approx(1800.0)


def test_older_samples_are_used_if_they_are_rare(spark: SparkSession, warehouse: Warehouse) -> None:
    """If samples are hours apart, rates and statuses are computed from samples of a day."""
    write(warehouse, ["g", "often"])
    remember(warehouse, 10, 6_000, "often")
    remember(warehouse, 20, 12_000, "often")
    remember(warehouse, 30, 18_000, "often")
    remember(warehouse, 720, 72_000)
    for minutes in (360, 90):
        remember(warehouse, minutes, 60 * minutes)  # 1 a second
    rows = {row["group"]: row for row in measured(spark, warehouse) if row["topic"] == "t"}
    assert rows["g"]["arrival_rate"] == pytest.approx(1.0)
    assert rows["g"]["status"] == "STOP"
    assert rows["often"]["arrival_rate"] == pytest.approx(10.0)
