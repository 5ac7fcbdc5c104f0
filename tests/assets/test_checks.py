"""Each asset check passes on valid data and fails on damaged data."""

import json
from collections.abc import Callable
from typing import Any

import dagster as dg
import numpy as np
import pytest

from fairlead.domain.records import StoredPlan
from fairlead.domain.samples import GroupSnapshot
from fairlead.wire.document import MemberShare
from tests.assets.conftest import RunChecks
from tests.fixtures.plans import SNAPSHOT_AT, MakeDraft
from tests.pipeline import Pipeline
from tests.samples import samples
from tests.stored import record_plan

pytestmark = pytest.mark.postgres

SNAPSHOT_ID = "20260102T030405.000000Z-00000000"
SOUND = {"orders-1": [0], "orders-2": [1, 2]}


def keep_snapshot(pipeline: Pipeline, *, error: str | None = None, other: str = "audit") -> None:
    """Write a snapshot of the group `orders`, and of a group `other` that could not be read.

    `other` belongs to another cohort. The last of the three partitions of `orders` has no leader.
    """
    when: dict[str, Any] = {"sample_id": SNAPSHOT_ID, "at": SNAPSHOT_AT}
    partitions = {"topics": ["t"], "counts": [3], "begin": [0, 0, -1], "end": [9, 9, -1]}
    broken = {"topics": [], "counts": [], "error": "it is broken, and not of this run"}
    rows = samples(
        when | partitions | {"group": "orders", "error": error}, when | broken | {"group": other}
    )
    snapshot = GroupSnapshot(SNAPSHOT_ID, SNAPSHOT_AT, 0.0, rows)
    pipeline.warehouse.write_snapshot(snapshot, cohorts={})


@pytest.fixture
def propose(pipeline: Pipeline, draft: MakeDraft) -> Callable[..., StoredPlan]:
    """Return a function that stores a plan of the group `orders`.

    `propose(shares, subscriptions={}) -> plan`
    """

    def propose(
        shares: dict[str, list[int]], subscriptions: dict[str, tuple[str, ...]] | None = None
    ) -> StoredPlan:
        topics = subscriptions or {}
        members = {
            name: MemberShare(topics.get(name, ("t0",)), {"t0": np.array(numbers, np.int32)})
            for name, numbers in shares.items()
        }
        return record_plan(pipeline.store, draft(members=members))

    return propose


def test_snapshot_whose_groups_could_be_read_passes(
    pipeline: Pipeline, run_check: RunChecks
) -> None:
    """The check passes although a group of another cohort could not be read."""
    keep_snapshot(pipeline)
    assert run_check("every_group_was_read") == {}


def test_group_that_could_not_be_read_is_named(pipeline: Pipeline, run_check: RunChecks) -> None:
    """If a group could not be read, the check fails with its name and the reason."""
    keep_snapshot(pipeline, error="its coordinator is gone")
    assert run_check("every_group_was_read") == {
        "every_group_was_read": ["orders: its coordinator is gone"]
    }


def test_valid_plan_passes(propose: Callable[..., StoredPlan], run_check: RunChecks) -> None:
    """A complete, unchanged plan passes."""
    propose(SOUND)
    assert run_check("every_partition_has_one_owner") == {}


@pytest.mark.parametrize(
    ("shares", "subscriptions", "named"),
    [
        ({"orders-1": [0], "orders-2": [1]}, {}, "t0-2"),
        (SOUND, {"orders-2": ("another",)}, "'t0', to which it does not subscribe"),
    ],
    ids=["no owner", "owner without a subscription"],
)
def test_plan_that_leaves_a_partition_without_its_owner_fails(
    propose: Callable[..., StoredPlan],
    run_check: RunChecks,
    shares: dict[str, list[int]],
    subscriptions: dict[str, tuple[str, ...]],
    named: str,
) -> None:
    """If a partition lacks its owner, the check names group, version, and partition or topic."""
    propose(shares, subscriptions)
    ((name, found),) = run_check("every_partition_has_one_owner").items()
    assert name == "every_partition_has_one_owner"
    assert any(
        failure.startswith("orders version 1: ") and named in failure for failure in found
    ), found


def test_altered_document_fails(
    pipeline: Pipeline, propose: Callable[..., StoredPlan], run_check: RunChecks
) -> None:
    """The check fails if a plan's document does not match its hash."""
    document = json.loads(propose(SOUND).document)
    document["members"]["orders-1"]["partitions"]["t0"] = ""
    altered = json.dumps(document).encode().hex()
    pipeline.tamper(
        "ALTER TABLE fairlead_raw.plan DROP CONSTRAINT plan_sha256_check",
        f"UPDATE fairlead_raw.plan SET document = '\\x{altered}'",
    )
    (problem,) = run_check("every_partition_has_one_owner")["every_partition_has_one_owner"]
    assert problem.startswith("orders version 1: ")
    assert "hash" in problem


def test_plan_of_another_cohort_is_not_checked(
    propose: Callable[..., StoredPlan], pipeline: Pipeline
) -> None:
    """The check of one cohort (groups planned together) ignores invalid plans of other cohorts."""
    propose({"orders-1": [0], "orders-2": [1]})
    pipeline.know("audit")
    result = pipeline.check("every_partition_has_one_owner")
    assert [evaluation.passed for evaluation in result.get_asset_check_evaluations()] == [True]


def test_check_without_a_snapshot_names_the_asset_to_run(pipeline: Pipeline) -> None:
    """In an empty warehouse the check fails, and names the asset to materialize first."""
    pipeline.know("orders")
    with pytest.raises(dg.Failure, match="materialize the upstream assets first"):
        pipeline.check("every_group_was_read", raise_on_error=True)
