"""What the tests of plans share: a small plan.

Belongs here: making documents. Does not: any expectation.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fairlead.plans.document import MemberShare, PlanDocument

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def make_plan(
    shares: Mapping[str, Mapping[str, list[int]]],
    weights: Mapping[str, list[float]],
    **changes: Any,
) -> PlanDocument:
    """Return a plan; each member subscribes to every topic that has weights."""
    values: dict[str, Any] = {
        "group": "orders",
        "version": 1,
        "plan_id": "00000000-0000-0000-0000-000000000001",
        "assignor": "lag-aware",
        "created_at": DAY,
        "snapshot_at": DAY,
        "expires_at": None,
        "partition_counts": {topic: len(values) for topic, values in weights.items()},
        "members": {
            name: MemberShare(
                tuple(sorted(weights)),
                {topic: np.array(numbers, np.int32) for topic, numbers in share.items()},
            )
            for name, share in shares.items()
        },
        "weights": {topic: np.array(values) for topic, values in weights.items()},
    }
    return PlanDocument(**(values | changes))
