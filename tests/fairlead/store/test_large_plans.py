"""A plan of very many partitions, all of which move: a million of them in the long form."""

import time
from functools import partial
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import Engine

from fairlead.domain.records import PlanDraft
from fairlead.store import PlanStore
from fairlead.wire.document import MemberShare
from tests.cost import costs_at_most
from tests.fairlead.store.conftest import MakeDraft
from tests.fairlead.store.test_history import query
from tests.lengths import form
from tests.stored import record_decision

pytestmark = pytest.mark.postgres

TOPICS = [f"t{number}" for number in range(20)]
MEMBERS = [f"orders-{number}" for number in range(500)]
EACH = form(short=10_000, long=50_000)


def drafted(draft: MakeDraft, group: str, each: int) -> PlanDraft:
    """Return a plan for topics of so many partitions, whose owners all change."""
    owner, names = np.arange(each) % len(MEMBERS), np.array(MEMBERS)
    share = [np.flatnonzero(owner == number).astype(np.int32) for number in range(len(MEMBERS))]
    weights = np.arange(each, dtype=np.float64)
    return draft(
        group=group,
        partition_counts=dict.fromkeys(TOPICS, each),
        members={
            name: MemberShare(tuple(TOPICS), dict.fromkeys(TOPICS, share[number]))
            for number, name in enumerate(MEMBERS)
        },
        weights=dict.fromkeys(TOPICS, weights),
        moves=pa.table(
            {
                "topic": pa.array(np.repeat(TOPICS, each)),
                "partition": pa.array(np.tile(np.arange(each, dtype=np.int32), len(TOPICS))),
                "previous_member": pa.array(
                    np.tile(names[(owner + 1) % len(MEMBERS)], len(TOPICS))
                ),
                "member": pa.array(np.tile(names[owner], len(TOPICS))),
                "weight": pa.array(np.tile(weights, len(TOPICS))),
                "reason": pa.repeat("orders-1 is the heaviest", len(TOPICS) * each),
            }
        ),
    )


def test_plan_of_very_many_partitions_is_stored_and_read_back(
    store: PlanStore, engine: Engine, draft: MakeDraft
) -> None:
    """The document is what was drafted, every move has its row; time grows as partitions do."""
    groups = count()

    def keep(each: int) -> None:
        group = f"{each}-{next(groups)}"
        decided = record_decision(store, drafted(draft, group, each))
        stored = store.get(group, 1)
        stored.verify()
        assert decided.plan == stored

    costs_at_most(
        40,
        partial(keep, EACH),
        partial(keep, EACH // 10),
        clock=time.perf_counter,  # clock: the database's work
    )
    whole = drafted(draft, f"{EACH}-0", EACH)
    document = store.get(whole.group, 1).verify()
    assert document.partition_counts == whole.partition_counts
    for topic in (TOPICS[0], TOPICS[-1]):
        np.testing.assert_array_equal(document.weights[topic], whole.weights[topic])
        for name in (MEMBERS[0], MEMBERS[-1]):
            planned = document.members[name].partitions[topic]
            np.testing.assert_array_equal(planned, whole.members[name].partitions[topic])
    counted = query(
        engine,
        "SELECT count(*) AS moves, count(DISTINCT (topic, partition)) AS partitions,"
        f" sum(weight) AS weight FROM fairlead.plan_moves WHERE group_id = '{whole.group}'",
    )
    partitions = len(TOPICS) * EACH
    weight = sum(weights.sum() for weights in whole.weights.values())
    assert counted == [{"moves": partitions, "partitions": partitions, "weight": weight}]
