"""Candidate plans of several groups in one Spark job, from a warehouse."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from fairlead.archive import SampleArchive
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.policy import Policy
from fairlead.domain.samples import GroupSnapshot, new_snapshot_id
from fairlead.spark.candidates import write_candidates
from fairlead.spark.planning import CANDIDATES
from fairlead.spark.warehouse import Warehouse
from tests.recalled import CONSUMED, recalled
from tests.samples import samples

pytestmark = pytest.mark.spark
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
RANGE = Policy(assignors=("range",))


def snapshot(
    lags: dict[str, list[int | None]], errors: dict[str, str] | None = None
) -> GroupSnapshot:
    """Return a snapshot with each group's lags; `a` and `b` each own half of the partitions."""
    snapshot_id = new_snapshot_id(NOON)
    rows = []
    for group in sorted({*lags, *(errors or {})}):
        values = lags.get(group, [])
        rows.append(
            {
                "group": group,
                "sample_id": snapshot_id,
                "at": NOON,
                "error": (errors or {}).get(group),
                "topics": ["t"],
                "counts": [len(values)],
                "begin": [-1 if lag is None else 0 for lag in values],
                "end": [-1 if lag is None else CONSUMED + lag for lag in values],
                "committed": [CONSUMED] * len(values),
                "members": [] if group == "empty" else ["a", "b"],
                "owner": [
                    -1 if group == "empty" else int(number >= len(values) // 2)
                    for number in range(len(values))
                ],
            }
        )
    return GroupSnapshot(snapshot_id, NOON, 0.0, samples(*rows))


def remember(warehouse: Warehouse, taken: GroupSnapshot) -> None:
    """Write samples of the minutes before a snapshot."""
    archive = SampleArchive(warehouse.path)
    past = [recalled(row) for row in taken.samples.to_pylist()]
    for before in range(past[0].num_rows - 1):
        sample = pa.concat_tables([series.slice(before, 1) for series in past])
        archive.append(sample, new_snapshot_id(sample["at"][0].as_py()))


SKEWED: list[int | None] = [100, 80, 5, 5]


def test_each_group_is_analysed_by_its_policy_and_fails_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Every group has a row; an error of one group affects neither the others nor the job."""
    warehouse = Warehouse(str(tmp_path))
    taken = snapshot(
        {"good-1": SKEWED, "good-2": [0, 0], "empty": [3], "holes": [1, None]}, {"bad": "why"}
    )
    warehouse.write_snapshot(taken, {})
    remember(warehouse, taken)
    policies = dict.fromkeys(
        ("good-1", "empty", "holes", "bad"), Policy(assignors=("lag-aware", "roundrobin"))
    ) | {"good-2": RANGE}
    write_candidates(spark, warehouse, taken.snapshot_id, policies, GroupMemories())
    candidates = warehouse.load("candidates", taken.snapshot_id)
    assert candidates.schema == CANDIDATES
    rows = candidates.to_pylist()

    assert {row["snapshot_id"] for row in rows} == {taken.snapshot_id}
    assert sorted((row["group"], row["assignor"]) for row in rows) == [
        ("bad", "observed"),
        ("empty", "observed"),
        ("good-1", "lag-aware"),
        ("good-1", "observed"),
        ("good-1", "roundrobin"),
        ("good-2", "observed"),
        ("good-2", "range"),
        ("holes", "observed"),
    ]
    errors = {row["group"]: row["error"] for row in rows if row["error"]}
    assert errors.keys() == {"bad", "holes"}
    assert errors["bad"] == "why"
    found = {row["group"]: (row["diagnosis"], row["decision"]) for row in rows if row["diagnosis"]}
    assert found == {"good-1": ("unbalanced", "plan"), "good-2": ("healthy", "no change")}


def test_memories_of_groups_are_used_in_the_analysis(spark: SparkSession, tmp_path: Path) -> None:
    """Each group is analysed with its remembered capacities and the time of its last plan."""
    warehouse, taken = Warehouse(str(tmp_path)), snapshot({"g": SKEWED, "h": SKEWED})
    warehouse.write_snapshot(taken, {})
    remember(warehouse, taken)
    fast = Capacity(99.0, measured=True, at=(NOON - timedelta(minutes=1)).timestamp())
    write_candidates(
        spark,
        warehouse,
        taken.snapshot_id,
        dict.fromkeys("gh", RANGE),
        GroupMemories({"g": {"b": fast}}, {"h": [NOON - timedelta(minutes=1)]}),
    )
    rows = warehouse.load("candidates", taken.snapshot_id, [("assignor", "==", "observed")])
    found = {row["group"]: row for row in rows.to_pylist()}
    known = {
        group: {capacity["member"]: capacity["records_per_s"] for capacity in row["capacities"]}
        for group, row in found.items()
    }
    assert known["g"]["b"] == 99.0
    assert known["h"]["b"] < 1
    assert "took effect" in found["h"]["decision_reason"]
    assert "took effect" not in found["g"]["decision_reason"]


def test_groups_stay_in_their_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """Each task writes one file: two groups with successive names, or one giant group."""
    warehouse = Warehouse(str(tmp_path))
    small: dict[str, list[int | None]] = {name: [1, 2] for name in "abde"}
    taken = snapshot({**small, "c": [0] * 30})
    warehouse.write_snapshot(taken, {})
    for _ in range(2):  # the second run replaces the rows
        policies = dict.fromkeys("abcde", RANGE)
        write_candidates(spark, warehouse, taken.snapshot_id, policies, GroupMemories())
        folder = tmp_path / "candidates" / taken.snapshot_id
        parts = sorted(folder.glob("part-*.parquet"))
        found = [set(pq.read_table(part)["group"].to_pylist()) for part in parts]
        assert found == [{"a", "b"}, {"d", "e"}, {"c"}]
    assert len(list(folder.iterdir())) == len(found) + 1
