"""Candidate plans of several groups in one Spark job."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from fairlead.kafka.snapshot import GROUPS, MEMBERS
from fairlead.policy import Policy
from fairlead.spark.candidates import candidate_plans
from fairlead.spark.planning import CANDIDATES

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
    assert candidates.columns == CANDIDATES.names
    summary = [row.asDict() for row in candidates.collect()]

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
    assert sorted((row["group"], row["assignor"]) for row in summary if row["owner"]) == [
        ("good-1", "lag-aware"),
        ("good-1", "observed"),
        ("good-1", "roundrobin"),
        ("good-2", "observed"),
        ("good-2", "range"),
    ]


def test_groups_stay_in_the_tasks_they_were_dealt_out_to(
    tables: tuple[DataFrame, DataFrame, DataFrame],
) -> None:
    """Nothing shuffles them anew: there are as many as were dealt, the giant's is the last."""
    policies = dict.fromkeys(("good-1", "good-2", "empty", "holes", "bad"), Policy())
    lag, members, groups = tables
    big = lag.where("group = 'good-1'").selectExpr("*", "explode(sequence(0, 9)) AS tens")
    grown = big.selectExpr(
        "group", "topic", "(partition + 3 * tens) AS partition", "lag", "arrival_rate"
    )
    candidates = candidate_plans(
        lag.where("group != 'good-1'").unionByName(grown), members, groups, policies
    )
    by_task = candidates.withColumn("task", sf.spark_partition_id()).select("task", "group")
    found = {row["group"]: row["task"] for row in by_task.distinct().collect()}
    assert found.pop("good-1") == 2
    assert sorted(found) == ["bad", "empty", "good-2", "holes"]
    assert set(found.values()) == {0, 1}
