"""Times of publications, read from the store for an analysis; and the imports of a dry run."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest

from fairlead.domain.records import StoredPlan
from fairlead.store.plans import PlanStore
from tests.fixtures.plans import SNAPSHOT_AT
from tests.programs import ended


@pytest.mark.postgres
def test_times_of_publications_are_read(
    store: PlanStore, publish: Callable[..., StoredPlan]
) -> None:
    """`changes` maps groups to the times of their publications, and omits groups without any."""

    def changed() -> dict[str, Sequence[datetime]]:
        memories = store.memories(["orders", "billing"])
        assert memories.capacities == {}
        return dict(memories.changes)

    assert changed() == {}
    publish("s1", group="orders")
    first = changed()
    publish("s2", group="orders", snapshot_at=SNAPSHOT_AT + timedelta(minutes=15))
    second = changed()
    assert list(first) == list(second) == ["orders"]
    assert second["orders"][:-1] == first["orders"]
    assert second["orders"][-1] > first["orders"][-1]


def test_dry_run_imports_little() -> None:
    """`fairlead plan --dry-run` imports no slow libraries, so that it starts quickly."""
    program = (
        "import sys; import fairlead.kafka.gateway, fairlead.archive,"
        "fairlead.workflows.planning_one_group,"
        "fairlead.store.engine, fairlead.store.analysis_memory; print(*sys.modules)"
    )
    imported = ended(sys.executable, "-c", program).stdout
    heavy = {"sqlalchemy.orm", "pandas", "pyspark", "dagster", "ortools", "matplotlib", "scipy"}
    assert heavy & set(imported.split()) == set()
