"""Fixtures of the assets' tests: a pipeline without consumers, and data for the checks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead.settings import Settings
from tests.pipeline import Pipeline, failed_checks, running_pipeline

RunChecks = Callable[[str], dict[str, list[str]]]


@pytest.fixture
def pipeline(settings: Settings, migrated: str, tmp_path: Path) -> Iterator[Pipeline]:
    """Return a pipeline with a separate database and warehouse. Its plan topic does not exist."""
    with running_pipeline(settings, migrated, "absent", tmp_path) as pipeline:
        yield pipeline


@pytest.fixture
def run_check(pipeline: Pipeline) -> RunChecks:
    """Return a function that runs a check, given its name, on the Dagster partition `orders`.

    The function returns a dictionary: name of a failed check -> its problems.
    """
    pipeline.know("orders")

    def run(name: str) -> dict[str, list[str]]:
        return failed_checks(pipeline.check(name))

    return run
