"""A backtest of a real warehouse, through the command line."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from fairlead.backtest.spark import find_snapshots
from fairlead.cli import app
from fairlead.errors import GroupError
from fairlead.kafka.snapshot import GROUPS, MEMBERS
from fairlead.spark.warehouse import Warehouse

pytestmark = pytest.mark.spark
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
LAG = pa.schema(
    {
        "snapshot_id": pa.string(),
        "group": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "lag": pa.int64(),
        "arrival_rate": pa.float64(),
        "status": pa.string(),
    }
)


def record(
    warehouse: Warehouse,
    hour: int,
    members: str,
    lags: Sequence[int] | None,
    error: str | None = None,
) -> None:
    """Write a snapshot of group `orders`: a letter a member, the first one owns everything."""
    at = NOON + timedelta(hours=hour)
    snapshot_id = f"{at:%Y%m%dT%H%M%S.%fZ}-0"
    key: dict[str, Any] = {"snapshot_id": snapshot_id, "group": "orders"}
    everything = [{"topic": "t", "partition": number} for number in range(len(lags or []))]
    rows = {
        "members": [
            key | {"member": name, "topics": ["t"], "partitions": [] if number else everything}
            for number, name in enumerate(members)
        ],
        "groups": [key | {"snapshot_at": at, "error": error}],
    }
    if lags is not None:
        rows["lag"] = [
            key | {"topic": "t", "partition": number, "lag": lag, "status": "OK"}
            for number, lag in enumerate(lags)
        ]
    for table, schema in (("members", MEMBERS), ("lag", LAG), ("groups", GROUPS)):
        if table in rows:
            warehouse.write(table, snapshot_id, pa.Table.from_pylist(rows[table], schema))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Return a day: good snapshots, a failed one, an empty one, one without lag; a topic grows."""
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    record(warehouse, 0, "ab", [6, 2])
    record(warehouse, 1, "ab", [6, 2], error="the coordinator does not answer")
    record(warehouse, 2, "", [6, 2])
    record(warehouse, 3, "ab", None)
    record(warehouse, 4, "ab", [6, 2, 4])
    record(warehouse, 5, "ab", [6, 2, 4])
    return warehouse


@pytest.mark.usefixtures("spark", "warehouse")
def test_command_ranks_assignors_on_what_was_recorded(tmp_path: Path) -> None:
    """Best first, with what they cost, what was skipped and why; and a drawing of it."""
    plot = tmp_path / "backtest.svg"
    arguments = ["backtest", "orders", "--since", "2026-01-05", "--json", "--output", str(plot)]
    names = ("sticky-lag-aware", "range")
    arguments += [text for name in names for text in ("--assignor", name)]
    result = CliRunner().invoke(
        app, arguments, env={"FAIRLEAD_WAREHOUSE": str(tmp_path / "warehouse")}
    )
    assert result.exception is None, result.output
    report = json.loads(result.stdout)
    assert report["snapshots"] == 3
    assert report["skipped"] == {
        "the coordinator does not answer": 1,
        "no member reads a partition": 1,
        "its lag was never computed": 1,
    }
    ranked = {row.pop("assignor"): row for row in report["assignors"]}
    assert list(ranked) == ["sticky-lag-aware", "range", "observed"]
    assert ranked["observed"]["series"]["heaviest"] == [8, 12, 12]
    assert ranked["range"]["series"]["heaviest"] == [6, 8, 8]
    # It takes over with one move; the partition that the topic grows by shifts the next one.
    assert (ranked["range"]["moves"], ranked["range"]["plans"]) == (2, 0)
    planned = ranked["sticky-lag-aware"]
    assert (planned["series"]["heaviest"], planned["moves"]) == ([8, 6, 6], 1)
    assert plot.read_text().startswith("<?xml")


def test_what_is_not_there_is_said_with_what_is(spark: SparkSession, warehouse: Warehouse) -> None:
    """An unknown group names the known ones; a span without snapshots the span that has some."""
    with pytest.raises(GroupError, match="no snapshot of group payments; it holds some of orders"):
        find_snapshots(spark, warehouse, "payments")
    span = "there are 6, from 2026-01-05T12:00:00.* to 2026-01-05T17:00:00"
    with pytest.raises(GroupError, match=span):
        find_snapshots(spark, warehouse, "orders", since=NOON + timedelta(days=1))
