"""Metadata of steps stay small for many groups, large groups and long names."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import dagster as dg
import numpy as np
import pyarrow as pa
import pytest
from dagster_shared.serdes import serialize_value

from assets.presentation import ROWS
from assets.shown import adoption, candidates, lag, plans, publication
from fairlead.domain.approval import ApprovalDecision
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.reconciliation import Action
from fairlead.domain.records import PlanDraft, StoredDecision, StoredPlan
from fairlead.settings import WebSettings
from fairlead.spark.planning import CANDIDATES
from fairlead.wire.document import MemberShare, content_hash
from fairlead.workflows.adoption import Adoption, Observed
from fairlead.workflows.proposal import Outcome
from fairlead.workflows.reconciling import StepResult
from tests.fairlead.store.conftest import SNAPSHOT_AT, make_draft, make_metrics

#: Bytes. Dagster stores metadata with every partition of every run.
MOST_BYTES = 100_000
GROUPS = [f"a-consumer-group-with-quite-a-long-name-in-some-region-{n:05}" for n in range(3_000)]
TOPIC = "a.topic.whose.name.says.team.domain.and.version.as.many.do.v1"
MEMBERS = [f"an-instance-id-as-kubernetes-makes-them-7c9f8b6d4-{n:04}" for n in range(500)]
PARTITIONS = 5_000
REASON = (
    "the most loaded member has more than its share, and this is what relieves it most for a move"
)
ASSIGNORS = [OBSERVED, "sticky-lag-aware", "lag-aware", "sticky", "fair", "roundrobin", "range"]


def test_lag_of_a_fleet() -> None:
    """Lag metadata list only the partitions with the most lag, and stay small."""
    rows = len(GROUPS) * 10
    measured = pa.table(
        {
            "group": np.repeat(GROUPS, 10),
            "topic": [TOPIC] * rows,
            "partition": np.tile(np.arange(10), len(GROUPS)),
            "lag": np.arange(rows) * 1_000_003,
            "member": [MEMBERS[0]] * rows,
            "arrival_rate": np.arange(rows) / 7,
            "consumption_rate": np.arange(rows) / 11,
            "time_lag_s": np.arange(rows) / 13,
            "status": ["STALL"] * rows,
        }
    )
    ordered = lag.worst_first(measured)
    facts = lag.describe(measured, ordered)
    assert ordered[0] == GROUPS[-1]
    assert facts["total lag (records)"] == rows * (rows - 1) // 2 * 1_000_003
    assert size_of(facts) < MOST_BYTES


def test_candidates_of_a_fleet() -> None:
    """Metadata list only the groups with the longest forecast lag, with their diagnoses."""
    table = pa.Table.from_pylist(
        [
            {
                "group": group,
                "assignor": assignor,
                **make_metrics(lag_max=place, moved=place),
                "outcome": REASON,
                "forecast_time_lag_s": float(place),
                "utilisation": 0.5,
                **({"diagnosis": "unbalanced", "names": [group]} if assignor == "observed" else {}),
                "evidence": REASON,
            }
            for place, group in enumerate(GROUPS[:300])
            for assignor in ASSIGNORS
        ],
        CANDIDATES,
    )
    groups = candidates.worst_first(table)
    assert groups[0] == GROUPS[299]
    facts = candidates.describe(table, groups)
    assert len(facts["by group"].records) == ROWS
    assert size_of(facts) < MOST_BYTES


@pytest.fixture(scope="module")
def large() -> tuple[PlanDraft, StoredPlan]:
    """Return a plan for 500 members and 5,000 partitions, as a draft and as stored."""
    numbers = np.arange(PARTITIONS, dtype=np.int32)
    draft = make_draft(
        group=GROUPS[0],
        partition_counts={TOPIC: PARTITIONS},
        members={
            name: MemberShare((TOPIC,), {TOPIC: numbers[place :: len(MEMBERS)]})
            for place, name in enumerate(MEMBERS)
        },
        weights={TOPIC: numbers * 1e6},
    )
    plan_id = uuid4()
    document = draft.document(1, plan_id, SNAPSHOT_AT).to_bytes()
    return draft, StoredPlan(
        group=draft.group,
        version=1,
        plan_id=plan_id,
        state="proposed",
        assignor=draft.assignor,
        reason=REASON,
        snapshot_id=draft.snapshot_id,
        snapshot_at=draft.snapshot_at,
        created_at=SNAPSHOT_AT,
        expires_at=None,
        document=document,
        sha256=content_hash(document),
        approved_sha256=None,
        topic="fairlead.plans",
        partition=0,
        record_offset=1,
        four_eyes=None,
        rolled_back_from=None,
    )


@pytest.mark.long
@pytest.mark.parametrize("groups", [GROUPS[:1], GROUPS], ids=["one group", "a fleet"])
def test_plan_of_a_large_group(large: tuple[PlanDraft, StoredPlan], groups: list[str]) -> None:
    """Metadata list only the heaviest moves, or the groups that need attention."""
    draft, plan = large
    approval = ApprovalDecision(approved=False, reason=f"waits for a person: {REASON}")
    outcomes = [
        Outcome(
            replace(draft, group=group),
            StoredDecision(
                group=group,
                snapshot_id="s1",
                outcome="plan",
                reason=REASON,
                plan=replace(plan, group=group),
                created=True,
            ),
            approval,
        )
        for group in groups
    ]
    move = {
        "topic": TOPIC,
        "partition": 1,
        "weight": 1e9,
        "previous_member": MEMBERS[0],
        "member": MEMBERS[1],
        "reason": REASON,
    }
    detail = plans.Detail(plan, [move] * PARTITIONS, make_metrics(), approval.reason)
    facts = plans.describe(outcomes, plans.worst_first(outcomes), detail, WebSettings())
    assert len(facts["moves"].records) == plans.MOVES
    assert facts["plans"] == len(groups)
    assert size_of(facts) < MOST_BYTES


def test_publication_and_adoption_of_a_fleet(large: tuple[PlanDraft, StoredPlan]) -> None:
    """Metadata list refusals and the groups with the least adherence first."""
    _, plan = large
    in_force = [replace(plan, group=group, state="published") for group in GROUPS]
    results = [StepResult(group, 1, Action.DISCARD, REASON) for group in GROUPS]
    facts = publication.describe(results, in_force, GROUPS)
    assert facts["refused"] == len(GROUPS)
    assert size_of(facts) < MOST_BYTES

    seen = [
        Observed(published, datetime.now(UTC), Adoption(PARTITIONS, place))
        for place, published in enumerate(in_force)
    ]
    facts = adoption.describe(seen, adoption.least_adherent_first(seen))
    assert facts["by group"].records[0].data["group"] == GROUPS[0]
    assert size_of(facts) < MOST_BYTES


def size_of(metadata: dict[str, Any]) -> int:
    """Return the number of bytes that Dagster stores for metadata."""
    return len(serialize_value(dg.AssetMaterialization("asset", metadata=metadata)))
