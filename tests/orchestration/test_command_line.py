"""What a person does at the command line, to a group of real consumers on real services."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairlead.cli import app
from fairlead.errors import StalePlanError
from orchestration.__main__ import main
from tests.docs.scenario import store_week
from tests.fairlead.followers.helpers import eventually
from tests.orchestration.conftest import StartConsumers
from tests.pipeline import APPROVED_BY_A_PERSON, APPROVED_BY_POLICY, Pipeline

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.postgres,
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]


def answer(*arguments: str) -> dict[str, Any]:
    """Return what a command answers to a program."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_plan_is_retired_rolled_back_to_approved_and_published(
    pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str
) -> None:
    """Each step says what it did; consumers fall back, then follow version 1's shares again."""
    consumers = start_consumers(unique_name)
    fallback = consumers.owned
    pipeline.configure(APPROVED_BY_POLICY)
    pipeline.run("planning", unique_name)
    planned = consumers.owned
    pipeline.configure(APPROVED_BY_A_PERSON)

    retired = answer("plans", "retire", unique_name, "--reason", "too risky", "--yes")
    assert (retired["version"], retired["topic"]) == (1, pipeline.settings.kafka.plan_topic)
    tombstone = pipeline.record(unique_name)
    assert tombstone is not None
    assert (tombstone.value, tombstone.position) == (
        None,
        (retired["partition"], retired["offset"]),
    )
    eventually(lambda: consumers.owned == fallback, "the consumers fall back")

    rolled_back = answer("plans", "rollback", unique_name, "1", "--reason", "it was fine", "--yes")
    assert (rolled_back["version"], rolled_back["state"]) == (2, "proposed")
    assert rolled_back["rolled_back_from"] == 1
    hashed = ("--sha256", rolled_back["sha256"])
    approved = answer("plans", "approve", unique_name, "2", "--reason", "agreed", "--yes", *hashed)
    assert approved["state"] == "approved"
    published = answer("plans", "publish", unique_name)
    record = pipeline.record(unique_name)
    assert record is not None
    assert record.value == pipeline.store.get(unique_name, 2).document
    assert record.position == (published["partition"], published["offset"])
    eventually(lambda: consumers.owned == planned, "the consumers follow the plan again")

    consumers.members["two"].stop()
    eventually(
        lambda: consumers.owned["one"] == sorted(fallback["one"] + fallback["two"]),
        "the other one takes everything",
    )
    refused = CliRunner().invoke(
        app, ["plans", "rollback", unique_name, "1", "--reason", "again", "--yes"]
    )
    assert refused.exit_code == 1
    assert isinstance(refused.exception, StalePlanError)
    assert "version 1 no longer fits" in str(refused.exception)
    assert [row["version"] for row in pipeline.history(unique_name)] == [1, 2]


def test_planning_from_a_shell_ends_with_what_came_of_each_group(
    pipeline: Pipeline,
    unique_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A line a group of this run, on its own: without what Dagster logs of its steps."""
    store_week(pipeline.settings.postgres.url.get_secret_value())
    (tmp_path / "dagster").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    assert main(["planning", unique_name]) == 0
    ((outcome, reason, _),) = pipeline.decisions(unique_name)
    shown, logged = capfd.readouterr()
    assert shown == f"{unique_name}: {outcome}: {reason}\n"
    assert "STEP_START" not in logged
