"""Candidate plans of several groups in one Spark job."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from fairlead.kafka.snapshot import GROUPS, MEMBERS
from fairlead.policy import Policy
from fairlead.spark.candidates import candidate_plans
from fairlead.spark.planning import PARTITIONS, SUMMARY

pytestmark = pytest.mark.spark
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def tables(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return lag, members and groups: good ones, an empty one, a broken one, a failed one."""

    def group(name: str, error: str | None = None) -> dict[str, Any]:
        return {"snapshot_id": "s", "snapshot_at": NOON, "group": name, "error": error}

    def member(group: str, name: str) -> dict[str, Any]:
        return {
            "snapshot_id": "s",
            "group": group,
            "member": name,
            "topics": ["t"],
            "partitions": [],
        }

    groups = [group("good-1"), group("good-2"), group("empty"), group("holes"), group("bad", "why")]
    members = [member(name, who) for name in ("good-1", "good-2", "holes") for who in "ab"]
    lag = [
        (name, "t", number, 10 * number, None)
        for name in ("good-1", "good-2", "empty", "holes", "unlisted")
        for number in ((0, 2) if name == "holes" else (0, 1, 2))
    ]
    return (
        spark.createDataFrame(
            lag, "group string, topic string, partition int, lag long, arrival_rate double"
        ),
        spark.createDataFrame(pa.Table.from_pylist(members, MEMBERS)),
        spark.createDataFrame(pa.Table.from_pylist(groups, GROUPS)),
    )


def test_each_group_is_planned_by_its_policy_and_fails_alone(
    tables: tuple[DataFrame, DataFrame, DataFrame],
) -> None:
    """Every listed group has a row; what is wrong with one does not reach another, nor the job."""
    policies = dict.fromkeys(
        ("good-1", "empty", "holes", "bad"), Policy(assignors=("lag-aware", "roundrobin"))
    ) | {"good-2": Policy(assignors=("range",))}
    candidates = candidate_plans(*tables, policies)
    summary = [row.asDict() for row in candidates.summary.collect()]
    partitions = [row.asDict() for row in candidates.partitions.collect()]
    candidates.release()

    assert candidates.summary.columns == SUMMARY.names
    assert candidates.partitions.columns == PARTITIONS.names
    assert {row["snapshot_id"] for row in summary} == {"s"}
    assert sorted((row["group"], row["assignor"]) for row in summary) == [
        ("bad", "observed"),
        ("empty", "observed"),
        ("good-1", "lag-aware"),
        ("good-1", "observed"),
        ("good-1", "roundrobin"),
        ("good-2", "observed"),
        ("good-2", "range"),
        ("holes", "observed"),
    ]
    errors = {row["group"]: row["error"] for row in summary if row["error"]}
    assert errors.keys() == {"bad", "holes"}
    assert errors["bad"] == "why"
    placed = {(row["group"], row["assignor"]): row["placed"] for row in summary}
    assert placed["good-2", "range"] == 3
    assert sorted({(row["group"], row["assignor"]) for row in partitions}) == [
        ("good-1", "lag-aware"),
        ("good-1", "roundrobin"),
        ("good-2", "range"),
    ]
