"""`python -m orchestration` when runs fail, without any service."""

from pathlib import Path

import dagster as dg
import pytest

from assets.partitions import COHORT
from orchestration.shell import run


def test_failed_run_is_reported_and_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has cohorts, step, cause and log."""
    config = tmp_path / "fairlead.toml"
    config.write_text("kafka.lease = 5\n")
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(config))
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(COHORT, ["a", "b", "other", "c"])
        failures = list(run(["a", "b", "c"], instance, log_level="CRITICAL"))
        ended = {record.run_id for record in instance.get_runs()}
    assert len(failures) == len(ended) == 2
    for failure, cohorts in zip(failures, ("a to b", "c"), strict=True):
        assert failure.startswith(f"planning of {cohorts} failed: group_offsets: ")
        assert f"{config}: kafka.lease" in failure
        assert any(f"; see run {run_id} in the UI" in failure for run_id in ended)
