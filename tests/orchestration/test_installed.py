"""The planner, run from an installed wheel instead of the checkout."""

from pathlib import Path

import pytest

from tests.fixtures.pipelines import StartConsumers
from tests.packaging import beside_the_tests_own, build
from tests.pipeline import APPROVED_BY_POLICY, Pipeline
from tests.programs import ended
from tests.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.spark]


def test_group_is_planned_by_the_installed_planner(
    pipeline: Pipeline,
    start_consumers: StartConsumers,
    unique_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The installed planner uses its own Spark and publishes a plan, which consumers follow."""
    python = beside_the_tests_own(tmp_path, build("wheel", tmp_path / "dist"))
    home = tmp_path / "dagster"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    consumers = start_consumers(unique_name)
    fallback = consumers.owned
    pipeline.configure(APPROVED_BY_POLICY)
    ended(python, "-m", "fairlead_planner.orchestration", unique_name, cwd=tmp_path)
    assert pipeline.only_version(unique_name).state == "published"
    eventually(lambda: consumers.owned != fallback, "the consumers follow the plan")
