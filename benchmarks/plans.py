"""Made-up plans: drafts for Fairlead's database, and documents for plan followers.

Belongs here: all parts of a plan except the owners. Belongs elsewhere: computing owners.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Producer

from fairlead.domain.records import PlanDraft
from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.wire.record import Origin, plan_headers

METRICS: Final[dict[str, Any]] = {
    **dict.fromkeys(("count_min", "count_max", "kept", "moved", "placed"), 1),
    **dict.fromkeys(
        ("balance_score", "lag_max", "lag_mean", "lag_lower_bound", "gap", "topic_spread"), 1.0
    ),
}

Counts = Mapping[str, int]
#: Partition numbers by member and topic.
Owned = Mapping[str, Mapping[str, npt.ArrayLike]]


def document(
    group: str, counts: Counts, owned: Owned, *, version: int = 1, **further: Any
) -> PlanDocument:
    """Return the document of a plan in which all members subscribe to all topics."""
    now = datetime.now(UTC)
    return PlanDocument(
        group=group,
        version=version,
        plan_id=f"plan-{version}",
        assignor="measured",
        created_at=now,
        snapshot_at=now,
        partition_counts=counts,
        members=_members(counts, owned),
        **further,
    )


def draft(group: str, counts: Counts, owned: Owned, moves: pa.Table, **further: Any) -> PlanDraft:
    """Return a draft of a plan in which all members subscribe to all topics."""
    given: dict[str, Any] = {
        "snapshot_id": "s1",
        "snapshot_at": datetime.now(UTC),
        "reason": "the most loaded member gets lighter",
        "observed": METRICS,
        "expires_at": None,
    }
    return PlanDraft(
        group=group,
        assignor="sticky-lag-aware",
        predicted=METRICS,
        moves=moves,
        partition_counts=counts,
        members=_members(counts, owned),
        weights={topic: np.arange(count, dtype=np.float64) for topic, count in counts.items()},
        **given | further,
    )


def moves(topic: str, partitions: Any, before: Any, after: Any) -> pa.Table:
    """Return the moves of some partitions of a topic; `before` and `after` are member names."""
    numbers = pa.array(partitions, pa.int32())
    columns = {"topic": pa.repeat(topic, len(numbers)), "partition": numbers}
    weights = np.ones(len(numbers))
    return pa.table({**columns, "previous_member": before, "member": after, "weight": weights})


def publish(servers: str, topic: str, plan: PlanDocument) -> None:
    """Write a plan to the plan topic without the planner."""
    value = plan.to_bytes()
    producer = Producer({"bootstrap.servers": servers})
    headers = plan_headers(
        value,
        group=plan.group,
        version=plan.version,
        origin=Origin(topic),
        epoch=1,
        lease_until=None,
    )
    producer.produce(topic, value, key=plan.group, headers=[*headers])
    producer.flush(30)


def _members(counts: Counts, owned: Owned) -> dict[str, MemberShare]:
    return {
        member: MemberShare(
            tuple(counts),
            {t: np.asarray(numbers, np.int32) for t, numbers in of.items() if np.size(numbers)},
        )
        for member, of in owned.items()
    }
