"""A plan of very many partitions, all of which move: a million of them in the long form."""

import time

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import Engine

from fairlead.store import PlanStore
from fairlead.wire.document import MemberShare
from tests.fairlead.store.conftest import MakeDraft
from tests.fairlead.store.test_history import query
from tests.lengths import form
from tests.stored import record_decision

pytestmark = pytest.mark.postgres

TOPICS, EACH, MEMBERS = 20, form(short=10_000, long=50_000), 500
BOUND_S = 120.0  # a million: some 8 s on two cores; something quadratic would take hours


def test_plan_of_very_many_partitions_is_stored_and_read_back(
    store: PlanStore, engine: Engine, draft: MakeDraft
) -> None:
    """The document is what was drafted, every move has its row, and time is that of a COPY."""
    owner = np.arange(EACH) % MEMBERS
    topics = [f"t{number}" for number in range(TOPICS)]
    names = np.array([f"orders-{number}" for number in range(MEMBERS)])
    share = [np.flatnonzero(owner == number).astype(np.int32) for number in range(MEMBERS)]
    weights = np.arange(EACH, dtype=np.float64)
    whole = draft(
        partition_counts=dict.fromkeys(topics, EACH),
        members={
            str(name): MemberShare(tuple(topics), dict.fromkeys(topics, share[number]))
            for number, name in enumerate(names)
        },
        weights=dict.fromkeys(topics, weights),
        moves=pa.table(
            {
                "topic": pa.array(np.repeat(topics, EACH)),
                "partition": pa.array(np.tile(np.arange(EACH, dtype=np.int32), TOPICS)),
                "previous_member": pa.array(np.tile(names[(owner + 1) % MEMBERS], TOPICS)),
                "member": pa.array(np.tile(names[owner], TOPICS)),
                "weight": pa.array(np.tile(weights, TOPICS)),
                "reason": pa.repeat("orders-1 is the heaviest", TOPICS * EACH),
            }
        ),
    )

    began = time.monotonic()
    decided = record_decision(store, whole)
    stored = store.get("orders", 1)
    document = stored.verify()
    assert time.monotonic() - began < BOUND_S

    assert decided.plan == stored
    assert document.partition_counts == whole.partition_counts
    for topic in (topics[0], topics[-1]):
        np.testing.assert_array_equal(document.weights[topic], weights)
        for number in (0, MEMBERS - 1):
            planned = document.members[f"orders-{number}"].partitions[topic]
            np.testing.assert_array_equal(planned, share[number])
    counted = query(
        engine,
        "SELECT count(*) AS moves, count(DISTINCT (topic, partition)) AS partitions,"
        " sum(weight) AS weight FROM fairlead.plan_moves WHERE group_id = 'orders'",
    )
    assert counted == [
        {
            "moves": TOPICS * EACH,
            "partitions": TOPICS * EACH,
            "weight": TOPICS * weights.sum(),
        }
    ]
