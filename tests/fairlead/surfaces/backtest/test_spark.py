"""A backtest of a real warehouse, through the command line."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from fairlead.domain.snapshot import GROUPS, MEMBERS
from fairlead.errors import GroupError
from fairlead.spark.lag import LAG
from fairlead.spark.warehouse import Warehouse
from fairlead.surfaces.backtest.spark import find_snapshots
from fairlead.surfaces.cli import app

pytestmark = pytest.mark.spark
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def record(
    warehouse: Warehouse,
    minute: int,
    members: str,
    lags: Sequence[int],
    *,
    error: str | None = None,
) -> None:
    """Write a snapshot of group `orders`: a letter a member, the first one owns everything.

    Each partition gets ten records a second.
    """
    at = NOON + timedelta(minutes=minute)
    snapshot_id = f"{at:%Y%m%dT%H%M%S.%fZ}-0"
    key: dict[str, Any] = {"snapshot_id": snapshot_id, "group": "orders"}
    everything = [{"topic": "t", "partition": number} for number in range(len(lags))]
    end = 10_000 + minute * 600
    rows = {
        "members": [
            key | {"member": name, "topics": ["t"], "partitions": [] if number else everything}
            for number, name in enumerate(members)
        ],
        "lag": [
            key
            | {"snapshot_at": at, "topic": "t", "partition": number}
            | {"begin_offset": 0, "end_offset": end, "committed_offset": end - lag}
            | {"status": "OK"}
            for number, lag in enumerate(lags)
        ],
        "groups": [key | {"snapshot_at": at, "error": error}],
    }
    schemas = {"members": MEMBERS, "lag": LAG, "groups": GROUPS}
    for table, listed in rows.items():
        warehouse.write(table, snapshot_id, pa.Table.from_pylist(listed, schemas[table]))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Return two hours in which one of two members cannot keep up: good snapshots and bad ones."""
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    for minute in range(0, 120, 5):
        behind = minute * 60 * 2  # of 20 a second it does 16
        record(warehouse, minute, "ab", [behind, behind])
    record(warehouse, 3, "ab", [6, 2], error="the coordinator does not answer")
    record(warehouse, 7, "", [6, 2])
    return warehouse


@pytest.mark.usefixtures("spark", "warehouse")
def test_command_says_what_would_have_happened(tmp_path: Path) -> None:
    """What was, then best first, with what it costs, what was skipped and why; and a drawing."""
    plot = tmp_path / "backtest.svg"
    arguments = ["backtest", "orders", "--since", "2026-01-05", "--json", "--output", str(plot)]
    names = ("sticky-lag-aware", "sticky")
    arguments += [text for name in names for text in ("--assignor", name)]
    result = CliRunner().invoke(
        app, arguments, env={"FAIRLEAD_WAREHOUSE": str(tmp_path / "warehouse")}
    )
    assert result.exception is None, result.output
    report = json.loads(result.stdout)
    assert report["snapshots"] == 24
    assert report["skipped"] == {
        "the coordinator does not answer": 1,
        "no member reads a partition": 1,
    }
    ranked = {row.pop("name"): row for row in report["in_charge"]}
    assert list(ranked) == ["recorded", "observed", "sticky", "sticky-lag-aware"]
    late = {name: row["late_partition_minutes"] for name, row in ranked.items()}
    # At 16 of 20 a second a minute's lateness takes five: two partitions are late from then on.
    assert late["recorded"] == pytest.approx(2 * 110, abs=1)
    assert late["observed"] == pytest.approx(2 * 110, rel=0.05)
    # One for each from the start on: nobody is late, for one move.
    assert (late["sticky"], ranked["sticky"]["moves"]) == (0, 0)
    planned = ranked["sticky-lag-aware"]
    assert (planned["plans"], planned["moves"]) == (1, 1)
    assert 0 < late["sticky-lag-aware"] < 0.7 * late["observed"]
    assert plot.read_text().startswith("<?xml")


def test_what_is_not_there_is_said_with_what_is(warehouse: Warehouse) -> None:
    """Before Spark starts: an unknown group names the known ones, a span the one that has some."""
    with pytest.raises(GroupError, match="no snapshot of group payments; it holds some of orders"):
        find_snapshots(warehouse, "payments")
    span = "there are 26, from 2026-01-05T12:00:00.* to 2026-01-05T13:55:00"
    with pytest.raises(GroupError, match=span):
        find_snapshots(warehouse, "orders", since=NOON + timedelta(days=1))
