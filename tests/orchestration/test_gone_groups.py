"""Plans of groups that do not exist: the runs that meet them end them, and need no Spark."""

import pytest
from typer.testing import CliRunner

from fairlead.errors import StalePlanError
from fairlead.surfaces.cli import app
from tests.docs.scenario import store_week
from tests.pipeline import Pipeline, metadata, rows

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


@pytest.fixture
def approved(pipeline: Pipeline, migrated: str) -> None:
    """Approve a plan of `billing`, a group that Kafka does not have."""
    store_week(migrated)
    plan = pipeline.store.get("billing", 1)
    pipeline.store.approve("billing", 1, sha256=plan.sha256, reason="fine", actor="kim")


@pytest.mark.usefixtures("approved")
def test_run_ends_the_approved_plan(pipeline: Pipeline) -> None:
    """The asset says that the group is gone; no other run is asked for."""
    result = pipeline.run("publication", "billing")
    (row,) = rows(result, "published_plan", "plans")
    assert row["where or why not"] == "the group does not exist any more"
    assert metadata(result, "published_plan")["refused"] == 1
    assert pipeline.store.get("billing", 1).state == "stale"


@pytest.mark.usefixtures("approved")
def test_command_says_that_the_group_is_gone(pipeline: Pipeline) -> None:
    """`fairlead plans publish` makes the same pass."""
    result = CliRunner().invoke(app, ["plans", "publish", "billing"])
    assert isinstance(result.exception, StalePlanError)
    assert "was not published: the group does not exist any more" in str(result.exception)
    assert pipeline.store.get("billing", 1).state == "stale"
