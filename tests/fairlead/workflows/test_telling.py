"""A pass over groups, on a real store and a real topic."""

from collections.abc import Callable, Collection

import pytest

from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store import PlanStore, StoredPlan
from fairlead.workflows.telling import Pass, tell_groups
from tests.fairlead.store.conftest import SNAPSHOT_AT
from tests.fairlead.workflows.plans import TERMS, live

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def test_who_got_a_plan_is_known_at_once_and_only_then(
    store: PlanStore, topic: PlanTopic, approve: Callable[..., StoredPlan]
) -> None:
    """The record stands in the topic by then; a pass that publishes nothing calls nobody."""
    plan = approve()
    known: list[tuple[list[str], bytes | None]] = []

    def at_once(groups: Collection[str]) -> None:
        record = topic.read("orders")
        known.append((list(groups), None if record is None else record.value))

    def tell() -> Pass:
        return tell_groups(
            store, ["orders"], live=live, topic=topic, terms=TERMS, now=SNAPSHOT_AT, at_once=at_once
        )

    assert tell().found == []
    assert known == [(["orders"], plan.document)]
    assert tell().results == []
    assert len(known) == 1
