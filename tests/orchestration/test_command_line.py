"""A person's commands in a shell, for a group of real consumers on real services."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from typer.testing import CliRunner

from fairlead.common.words import plural
from fairlead.domain.policy import Policy
from fairlead.errors import StalePlanError
from fairlead.surfaces.cli import app
from fairlead.wire.record import withdrawn_value
from orchestration.shell import main
from tests.fixtures.pipelines import StartConsumers
from tests.orchestration.test_planning import planned_shares
from tests.pipeline import APPROVED_BY_A_PERSON, APPROVED_BY_POLICY, Pipeline
from tests.waiting import eventually

#: Lines that a planning run logs in this order, one at the start of each step.
STEPS = [
    "Reading the offsets and members of 1 group",
    f"Analysing 1 group, with up to {plural(len(Policy().assignors), 'candidate')}",
    "Measuring the lag of 1 group",
    "Deciding on 1 group",
    "Reconciling the plan topic with the database: 1 group",
    "Checking the adherence of 1 group, for up to 20 s for 1 new plan",
]

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.postgres,
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]


def answer(*arguments: str) -> dict[str, Any]:
    """Run a command and return its JSON output."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture
def planned_from_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that plans a group like `python -m orchestration`, and checks the log."""
    home = tmp_path / "dagster"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))

    def plan(group: str) -> None:
        assert main([group]) == 0
        with dg.DagsterInstance.get() as instance:
            (run,) = instance.get_runs(limit=1)
            messages = [entry.user_message for entry in instance.all_logs(run.run_id)]
        assert [line for line in messages if line in STEPS] == STEPS

    return plan


def test_group_is_planned_withdrawn_rolled_back_approved_and_published(
    pipeline: Pipeline,
    start_consumers: StartConsumers,
    planned_from_a_shell: Callable[[str], None],
    unique_name: str,
) -> None:
    """Consumers follow the plan, fall back after its withdrawal, and follow it after a rollback.

    When a member has left, a rollback to version 1 is refused.
    """
    consumers = start_consumers(unique_name)
    fallback = consumers.owned
    pipeline.configure(APPROVED_BY_POLICY)
    planned_from_a_shell(unique_name)
    planned = planned_shares(pipeline, consumers, 1)
    eventually(lambda: consumers.owned == planned, "the consumers follow the plan")
    pipeline.configure(APPROVED_BY_A_PERSON)

    withdrawn = answer("plans", "withdraw", unique_name, "--reason", "too risky", "--yes")
    assert (withdrawn["version"], withdrawn["topic"]) == (1, pipeline.settings.kafka.plan_topic)
    record = pipeline.record(unique_name)
    assert record is not None
    assert (record.value, record.position) == (
        withdrawn_value(unique_name, 1),
        (withdrawn["partition"], withdrawn["offset"]),
    )
    eventually(lambda: consumers.owned == fallback, "the consumers fall back")

    rolled_back = answer("plans", "rollback", unique_name, "1", "--reason", "it was fine", "--yes")
    assert (rolled_back["version"], rolled_back["state"]) == (2, "proposed")
    assert rolled_back["rolled_back_from"] == 1
    hashed = ("--sha256", rolled_back["sha256"])
    approved = answer("plans", "approve", unique_name, "2", "--reason", "agreed", "--yes", *hashed)
    assert approved["state"] == "approved"
    published = answer("plans", "publish", unique_name)
    assert pipeline.store.unobserved([pipeline.store.get(unique_name, 2)]) == set()
    assert published["followed"] is not None
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
