"""Runs of `python -m orchestration` that fail. The test needs no services."""

from pathlib import Path

import dagster as dg
import pytest

from assets.partitions import COHORT
from orchestration.shell import run


def test_failed_run_is_counted_and_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the cohorts a, b, other, c, all but `other` are planned: this takes two runs.

    A run covers only adjacent cohorts. The first run fails, but the second one starts; it fails,
    too, and both are counted.
    """
    config = tmp_path / "fairlead.toml"
    config.write_text("kafka.lease = 5\n")
    monkeypatch.setenv("FAIRLEAD_CONFIG", str(config))
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(COHORT, ["a", "b", "other", "c"])
        assert run(["a", "b", "c"], instance) == len(instance.get_runs()) == 2
