"""What a person does from the UI, to a group of real consumers on real services."""

from typing import Any

import pytest

from tests.fairlead.followers.helpers import eventually
from tests.orchestration.conftest import StartConsumers
from tests.pipeline import APPROVED_BY_A_PERSON, APPROVED_BY_POLICY, Pipeline

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.postgres,
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]


def test_retired_plan_is_left_and_comes_back_by_rollback_and_approval(
    pipeline: Pipeline, start_consumers: StartConsumers, unique_name: str
) -> None:
    """The consumers return to their fallback, and follow version 1's shares again as version 2."""
    consumers = start_consumers(unique_name)
    fallback = consumers.owned
    pipeline.configure(APPROVED_BY_POLICY)
    pipeline.run("planning", unique_name)
    planned = consumers.owned
    assert planned != fallback

    assert pipeline.operate("retire", actor="kim", group=unique_name, reason="too risky").success
    eventually(lambda: consumers.owned == fallback, "the consumers fall back")
    pipeline.configure(APPROVED_BY_A_PERSON)
    assert pipeline.operate("rollback", group=unique_name, version=1, reason="it was fine").success
    assert pipeline.store.get(unique_name, 2).state == "proposed"
    approval: dict[str, Any] = {"group": unique_name, "version": 2, "reason": "agreed"}
    assert not pipeline.operate("approve", **approval, sha256="0" * 64).success
    assert pipeline.operate("approve", actor="lee", **approval).success
    pipeline.run("publication", unique_name)

    eventually(lambda: consumers.owned == planned, "the consumers follow the plan again")
    first, second = pipeline.history(unique_name)
    assert (first["state"], second["state"]) == ("retired", "published")
    assert (second["decided_by"], second["decision"]) == ("lee", "agreed")
    retired = pipeline.sql(
        "SELECT actor, reason FROM fairlead.plan_event WHERE group_id = %s AND state = 'retired'",
        unique_name,
    )
    assert retired[0]["actor"] == "kim"
    assert retired[0]["reason"].startswith("too risky (tombstone in ")


def test_operation_that_is_refused_says_why_at_once(pipeline: Pipeline, unique_name: str) -> None:
    """No retries: the life of a plan does not change by asking again."""
    result = pipeline.operate("reject", group=unique_name, version=7, reason="no")
    assert not result.success
    (failure,) = (event for event in result.all_events if event.is_step_failure)
    description = failure.step_failure_data.user_failure_data
    assert description is not None
    assert description.description == f"group {unique_name} has no version 7"
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
