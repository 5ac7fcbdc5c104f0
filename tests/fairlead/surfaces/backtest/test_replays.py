"""`fairlead backtest` on an archive of samples."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairlead.archive import SampleArchive
from fairlead.domain.samples import new_snapshot_id
from fairlead.errors import GroupError
from fairlead.surfaces.backtest.replays import find_samples
from fairlead.surfaces.cli import app
from tests.samples import samples

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def sample(minute: int, members: str, lag: int, **values: Any) -> dict[str, Any]:
    """Return a sample of group `orders`; each letter of `members` is one member's name.

    The first member owns both partitions, each of which gets ten records a second.
    """
    end = 10_000 + minute * 600
    return {
        "group": "orders",
        "at": NOON + timedelta(minutes=minute),
        "topics": ["t"],
        "counts": [2],
        "begin": [0, 0],
        "end": [end, end],
        "committed": [end - lag, end - lag],
        "members": list(members),
        "owner": [0, 0] if members else [-1, -1],
    } | values


@pytest.fixture
def archive(tmp_path: Path) -> SampleArchive:
    """Return two hours of samples, in which `a` owns everything and falls behind.

    Two more samples are unusable.
    """
    archive = SampleArchive(str(tmp_path / "warehouse"))
    rows = [
        sample(minute, "ab", minute * 60 * 2) for minute in range(0, 120, 5)
    ]  # the group reads 16 of the 20 records per second
    rows.append(sample(3, "ab", 6, error="the coordinator does not answer"))
    rows.append(sample(7, "", 6))
    for row in rows:
        archive.append(samples(row), new_snapshot_id(row["at"]))
    return archive


@pytest.mark.usefixtures("archive")
def test_command_compares_assignors(tmp_path: Path) -> None:
    """The report ranks assignors by how long the lag of partitions exceeded the objective.

    It also counts the unusable samples, by reason.
    """
    arguments = ["backtest", "orders", "--since", "2026-01-05", "--json"]
    names = ("sticky-lag-aware", "sticky")
    arguments += [text for name in names for text in ("--assignor", name)]
    result = CliRunner().invoke(
        app, arguments, env={"FAIRLEAD_WAREHOUSE": str(tmp_path / "warehouse")}
    )
    assert result.exception is None, result.output
    report = json.loads(result.stdout)
    assert report["samples"] == 24
    assert report["skipped"] == {
        "the coordinator does not answer": 1,
        "no member reads a partition": 1,
    }
    ranked = {row.pop("name"): row for row in report["in_charge"]}
    assert list(ranked) == ["recorded", "observed", "sticky", "sticky-lag-aware"]
    late = {name: row["over_objective_partition_minutes"] for name, row in ranked.items()}
    # Only 16 of 20 records/s are read, so both partitions exceed the objective from minute 10 on.
    assert late["recorded"] == pytest.approx(2 * 110, abs=1)
    assert late["observed"] == pytest.approx(2 * 110, rel=0.05)
    # `sticky` gives each member one partition from the start, so no partition falls behind.
    assert (late["sticky"], ranked["sticky"]["moves"]) == (0, 0)
    planned = ranked["sticky-lag-aware"]
    assert (planned["plans"], planned["moves"]) == (1, 1)
    assert 0 < late["sticky-lag-aware"] < 0.7 * late["observed"]


def test_errors_list_groups_or_the_recorded_period(archive: SampleArchive, tmp_path: Path) -> None:
    """The error for an unknown group names the recorded groups.

    The error for a period without samples names the recorded period.
    """
    with pytest.raises(GroupError, match="of group payments is stored, only samples of orders"):
        find_samples(archive, "payments")
    span = "has 26 samples from other times, from 2026-01-05T12:00:00.* to 2026-01-05T13:55:00"
    with pytest.raises(GroupError, match=span):
        find_samples(archive, "orders", since=NOON + timedelta(days=1))
    with pytest.raises(
        GroupError, match="No samples are stored: the sensor group_samples takes one"
    ):
        find_samples(SampleArchive(str(tmp_path / "empty")), "orders")
