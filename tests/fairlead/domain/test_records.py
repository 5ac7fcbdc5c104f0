"""Integrity checks of stored plans."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from fairlead.domain.records import StoredPlan
from fairlead.errors import InvalidPlanError, TamperedPlanError
from fairlead.wire.document import PlanDocument, content_hash
from tests.stored import stored_plan

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PLAN_ID = UUID("6f2c7a0e-7d9b-4c65-8a4c-0c5d1f3f6b1a")


def document(**changes: object) -> PlanDocument:
    values = {
        "group": "orders",
        "version": 7,
        "plan_id": str(PLAN_ID),
        "assignor": "sticky",
        "created_at": NOW,
        "snapshot_at": NOW,
        "partition_counts": {},
        "members": {},
    }
    return PlanDocument(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def plan() -> StoredPlan:
    return stored_plan(document())


def test_altered_bytes_are_refused(plan: StoredPlan) -> None:
    with pytest.raises(TamperedPlanError, match="version 7: the document's hash is"):
        replace(plan, document=plan.document + b" ").verify()


def test_bytes_altered_together_with_their_hash_are_refused(plan: StoredPlan) -> None:
    value = document(assignor="range").to_bytes()
    with pytest.raises(TamperedPlanError, match="was approved"):
        replace(plan, document=value, sha256=content_hash(value)).verify()


def test_another_versions_document_is_refused(plan: StoredPlan) -> None:
    value = document(version=6).to_bytes()
    other = replace(
        plan, document=value, sha256=content_hash(value), approved_sha256=content_hash(value)
    )
    with pytest.raises(TamperedPlanError, match="another plan's: version 6"):
        other.verify()


def test_another_groups_document_is_refused(plan: StoredPlan) -> None:
    value = document(group="billing").to_bytes()
    other = replace(plan, document=value, sha256=content_hash(value), approved_sha256=None)
    with pytest.raises(InvalidPlanError, match="for group 'billing'"):
        other.verify()
