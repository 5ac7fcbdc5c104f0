"""A pass over groups, on a real store and a real topic."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import pytest

from fairlead.domain.groups import LiveGroup
from fairlead.errors import GroupError, KafkaUnavailableError
from fairlead.kafka.descriptions import read_description
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.store import PlanStore, StoredPlan
from fairlead.store.brakes import put_on, release
from fairlead.store.outbox import PublishRequest
from fairlead.workflows.nudging import BrokerAdoption
from fairlead.workflows.publication import Live
from fairlead.workflows.publication_pass import (
    LATER,
    SOON,
    Pass,
    failures_recorded,
    publication_pass,
)
from tests.fairlead.store.conftest import SNAPSHOT_AT
from tests.fairlead.workflows.plans import OPTIONS, live

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Step = Callable[..., StoredPlan]
#: What Kafka tells of a group that does not exist, and of one in a rebalance.
ABSENT: Final = {"group_state": "Dead", "error": "[Error 69] GroupIdNotFoundError"}
REBALANCING: Final = {"group_state": "PreparingRebalance", "error": None}


def described(
    raw: Mapping[str, str | None], groups: Iterable[str]
) -> dict[str, LiveGroup | GroupError]:
    """Describe groups as the gateway does where Kafka tells this of them."""
    told: dict[str, Any] = {"protocol_type": "consumer", "protocol_data": "", "members": []}
    told |= raw
    return {
        group: GroupError(f"Group {group}: {read_description(group, told).error}")
        for group in groups
    }


absent: Final = partial(described, ABSENT)
rebalancing: Final = partial(described, REBALANCING)


def run(store: PlanStore, topic: PlanTopic, live: Live = live, now: datetime = SNAPSHOT_AT) -> Pass:
    """Make a pass over the group of the store's drafts."""
    return publication_pass(store, ["orders"], live=live, topic=topic, options=OPTIONS, now=now)


def test_who_got_a_plan_is_known_at_once_and_only_then(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """The record stands in the topic by then; a pass that publishes nothing calls nobody."""
    plan = approve()
    known: list[tuple[list[str], bytes | None]] = []

    def follow_up(groups: Collection[str]) -> list[BrokerAdoption]:
        record = topic.read("orders")
        known.append((list(groups), None if record is None else record.value))
        return []

    def publish() -> Pass:
        return publication_pass(
            store,
            ["orders"],
            live=live,
            topic=topic,
            options=OPTIONS,
            now=SNAPSHOT_AT,
            follow_up=follow_up,
        )

    assert publish().found == []
    assert known[0] == (["orders"], plan.document)
    assert publish().results == []
    assert [groups for groups, _ in known] == [["orders"], ["orders"]]


def test_plan_of_a_rebalancing_group_waits_and_says_so(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """Why it was not sent stands beside the plan until it is; it is tried again within a minute."""
    approve()
    (result,) = run(store, topic, rebalancing).results
    assert (result.waits, result.passing) == (True, True)
    (row,) = store.history("orders")
    assert row["state"] == "approved"
    assert "The group is rebalancing (PreparingRebalance)" in row["not_sent"]
    assert row["sent_again_at"] - row["not_sent_at"] == SOON < timedelta(minutes=1)
    assert store.last_attempts(["orders"])["orders"].reason == row["not_sent"]
    assert run(store, topic).results[0].position is not None
    (row,) = store.history("orders")
    assert (row["state"], row["not_sent"]) == ("published", None)
    assert store.last_attempts(["orders"]) == {}


def test_plan_that_a_brake_holds_waits_and_says_who_put_it_on(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """While it holds nobody describes the group for it; once it is released the plan goes out."""
    approve()
    put_on(store.engine, "orders", reason="incident 4711", actor="kim")

    def ask(groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
        assert not list(groups)
        return {}

    (result,) = run(store, topic, ask).results
    assert result.waits
    assert "the brake of group orders holds: kim put it on at" in result.reason
    assert result.reason.endswith("incident 4711")
    assert store.last_attempts(["orders"])["orders"].reason == result.reason
    release(store.engine, "orders", reason="it is over")
    assert store.last_attempts(["orders"]) == {}
    assert run(store, topic).results[0].position is not None


def test_plan_that_is_on_its_way_to_a_rebalancing_group_says_so(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """A sender died before the send: the plan is not known to be wrong, and not sent either."""
    approve()
    with store.outbox().turn(topic.name, 0) as turn:
        turn.intend([PublishRequest("orders", 1, lease_until=SNAPSHOT_AT)])
    (result,) = run(store, topic, rebalancing).results
    assert result.waits
    (row,) = store.history("orders")
    assert (row["state"], row["not_sent"]) == ("sending", result.reason)


@pytest.mark.parametrize("state", ["approved", "sending"])
def test_plan_of_a_group_that_does_not_exist_is_stale(
    store: PlanStore, topic: PlanTopic, approve: Step, state: str
) -> None:
    """It has an end, and no run tries again."""
    approve()
    if state == "sending":
        with store.outbox().turn(topic.name, 0) as turn:
            turn.intend([PublishRequest("orders", 1, lease_until=SNAPSHOT_AT)])
    assert store.get("orders", 1).state == state
    (result,) = run(store, topic, absent).results
    assert (result.reason, result.waits) == ("the group does not exist any more", False)
    assert store.get("orders", 1).state == "stale"
    assert store.outbox().outstanding() == []


@pytest.mark.parametrize(("live", "state"), [(absent, "stale"), (live, "approved")])
def test_plan_of_a_group_that_is_gone_ends_whoever_the_pass_is_about(
    store: PlanStore, topic: PlanTopic, approve: Step, live: Live, state: str
) -> None:
    """Dagster has removed its partition; a group that exists is for the runs about it."""
    approve()
    publication_pass(store, [], live=live, topic=topic, options=OPTIONS, now=SNAPSHOT_AT)
    assert store.get("orders", 1).state == state


def test_unreadable_group_is_tried_again_after_a_while(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """What does not end by itself need not be tried at every tick."""
    approve()

    def unreadable(groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
        return {group: GroupError("Several members are called x") for group in groups}

    run(store, topic, unreadable)
    attempt = store.last_attempts(["orders"])["orders"]
    assert (attempt.reason, attempt.again_at - attempt.at) == (
        "Several members are called x",
        LATER,
    )


def test_pass_that_fails_says_why_nothing_was_sent(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """The broker is away: the run ends with the error, and the plan says it."""
    approve()

    def away(groups: Iterable[str]) -> dict[str, LiveGroup | GroupError]:
        raise KafkaUnavailableError(f"Kafka does not describe {list(groups)}")

    with pytest.raises(KafkaUnavailableError), failures_recorded(store, ["orders"]):
        run(store, topic, away)
    attempt = store.last_attempts(["orders"])["orders"]
    assert attempt.reason == "Kafka does not describe ['orders']"
    assert attempt.again_at - attempt.at == SOON


def test_lease_of_a_group_that_does_not_exist_ends_and_its_plan_with_it(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """It is not renewed, for the group may come back; when it is over, the plan is retired."""
    approve()
    began = datetime.now(UTC)
    run(store, topic)
    until = store.get("orders", 1).lease_until
    assert until is not None
    waiting = run(store, topic, absent, began + OPTIONS.lease / 2)
    assert waiting.untold == [("orders", "the group does not exist any more")]
    assert store.get("orders", 1).lease_until == until
    assert store.last_attempts(["orders"])["orders"].again_at <= until
    assert run(store, topic, absent, until).retired[0].version == 1
    assert store.get("orders", 1).state == "retired"


def test_lease_that_is_over_is_seen_whoever_the_pass_is_about(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """Dagster has removed the partition of a group that is gone: no run is about it any more."""
    approve()
    run(store, topic)
    later = datetime.now(UTC) + OPTIONS.lease
    done = publication_pass(store, [], live=absent, topic=topic, options=OPTIONS, now=later)
    assert [plan.group for plan in done.retired] == ["orders"]


def test_group_that_comes_back_keeps_its_plan(
    store: PlanStore, topic: PlanTopic, approve: Step
) -> None:
    """Within the lease, and after it: the plan is told again."""
    approve()
    run(store, topic)
    for later in (OPTIONS.lease / 2, OPTIONS.lease * 2):
        now = datetime.now(UTC) + later
        assert run(store, topic, now=now).retired == []
        assert store.get("orders", 1).lease_until == now + OPTIONS.lease
