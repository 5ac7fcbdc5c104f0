"""Limits for the size of a step's metadata: many groups, large groups, long names."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import dagster as dg
import numpy as np
import pyarrow as pa
import pytest
from dagster_shared.serdes import serialize_value

from assets.presentation import ROWS
from assets.shown import candidates, plans
from fairlead.domain.approval import ApprovalDecision
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.records import PlanDraft, StoredDecision, StoredPlan
from fairlead.settings import WebSettings
from fairlead.spark.planning import CANDIDATES
from fairlead.wire.document import MemberShare
from fairlead.workflows.proposal import Outcome
from tests.fixtures.plans import SNAPSHOT_AT, make_draft, make_metrics
from tests.stored import stored_plan

#: Maximum bytes of metadata, which Dagster stores with every partition of every run.
MOST_BYTES = 100_000
GROUPS = [f"a-consumer-group-with-quite-a-long-name-in-some-region-{n:05}" for n in range(3_000)]
TOPIC = "a.topic.whose.name.says.team.domain.and.version.as.many.do.v1"
MEMBERS = [f"an-instance-id-as-kubernetes-makes-them-7c9f8b6d4-{n:04}" for n in range(500)]
PARTITIONS = 5_000
REASON = (
    "the most loaded member has more than its share, and this is what relieves it most for a move"
)
ASSIGNORS = [OBSERVED, "sticky-lag-aware", "lag-aware", "sticky", "fair", "roundrobin", "range"]


def test_candidates_of_a_fleet() -> None:
    """Metadata about 300 groups contain only the worst groups and stay below the limit in bytes."""
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
    document = draft.document(1, uuid4(), SNAPSHOT_AT)
    return draft, replace(
        stored_plan(document),
        state="proposed",
        reason=REASON,
        approved_sha256=None,
        topic="fairlead.plans",
        partition=0,
        record_offset=1,
    )


@pytest.mark.long
@pytest.mark.parametrize("groups", [GROUPS[:1], GROUPS], ids=["one group", "a fleet"])
def test_plan_of_a_large_group(large: tuple[PlanDraft, StoredPlan], groups: list[str]) -> None:
    """Metadata about 5,000 moves contain only `MOVES` of them and stay below the limit in bytes."""
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


def size_of(metadata: dict[str, Any]) -> int:
    """Return the number of bytes that Dagster stores for metadata."""
    return len(serialize_value(dg.AssetMaterialization("asset", metadata=metadata)))
