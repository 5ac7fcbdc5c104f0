"""`fairlead plan` on real groups: the proposed plan, and the stored data."""

import json
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner, Result

from fairlead.archive import SampleArchive
from fairlead.surfaces.cli import app
from tests.fixtures.pipelines import StartConsumers
from tests.full_disk import no_room
from tests.pipeline import Pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

#: A short horizon, so that a backlog without new arrivals still causes a plan.
SOON = '[[policies]]\nobjective = "PT10S"\nhorizon = "PT30S"\n'


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["plan", *arguments])


def test_group_is_planned_in_this_process(
    pipeline: Pipeline,
    start_consumers: StartConsumers,
    unique_name: str,
) -> None:
    """A dry run stores nothing; a real run proposes version 1; a second run changes nothing.

    If the disk is full, the plan is stored although the sample cannot be archived.
    """
    pipeline.configure(SOON)
    start_consumers(unique_name)
    tried = run(unique_name, "--dry-run", "--json")
    assert tried.exit_code == 0, tried.output
    answer = json.loads(tried.stdout)
    assert (answer["group"], answer["diagnosis"], answer["outcome"]) == (
        unique_name,
        "unbalanced",
        "plan",
    )
    assert answer["samples"] > 6
    assert [move["previous_member"] for move in answer["moves"]]
    assert answer["version"] is None
    assert pipeline.decisions(unique_name) == []

    with no_room():
        stored = run(unique_name)
    assert stored.exit_code == 0, stored.output
    assert "the decision is stored, but the sample is not: cannot write" in stored.stderr
    assert "unbalanced" in stored.stdout
    assert "Stored as version 1: proposed" in stored.stdout
    plan = pipeline.store.get(unique_name, 1)
    assert plan.verify().assignor == answer["assignor"]
    assert len(pipeline.decisions(unique_name)) == 1

    again = json.loads(run(unique_name, "--json").stdout)
    assert (again["version"], again["outcome"]) == (None, "no change")
    assert again["reason"].startswith("version 1")
    decided = pipeline.sql("SELECT snapshot_id FROM fairlead_raw.decision ORDER BY snapshot_id")
    archive = SampleArchive(pipeline.settings.warehouse_path)
    begun = datetime.fromtimestamp(0, UTC)
    sampled = archive.read(begun, datetime.now(UTC), [unique_name])["sample_id"].to_pylist()
    assert [row["snapshot_id"] in sampled for row in decided] == [False, True]
    assert archive.taken() is None  # the command takes no sample of all groups


def test_dry_run_needs_no_database(
    pipeline: Pipeline,
    start_consumers: StartConsumers,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a database, a dry run warns and a normal run fails."""
    pipeline.configure(SOON)
    start_consumers(unique_name)
    monkeypatch.setenv("FAIRLEAD_POSTGRES__URL", "postgresql://nobody@127.0.0.1:1/nothing")
    tried = run(unique_name, "--dry-run", "--json")
    assert tried.exit_code == 0
    assert "continuing without the stored capacities" in tried.stderr
    assert json.loads(tried.stdout)["outcome"] == "plan"
    assert run(unique_name).exit_code == 1
