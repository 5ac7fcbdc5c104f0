"""Requests that people make on pages, carried out by the planner."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine

from fairlead.domain.policy import Approval, Policy
from fairlead.domain.records import StoredPlan
from fairlead.errors import GroupError, KafkaUnavailableError
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from fairlead.store import acts
from fairlead.store.acts import Verb
from fairlead.store.plans import PlanStore
from fairlead.wire.record import withdrawn_value
from fairlead.workflows.page_acts import take_up
from tests.fairlead.workflows.plans import OPTIONS, Dying
from tests.fairlead.workflows.test_rollback import NOW, SECOND, following_second
from tests.records import newest_record
from tests.stored import plan_history, wanted

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Step = Callable[..., StoredPlan]
AUTOMATIC = (Policy(approval=Approval(automatic=True)),)


@pytest.fixture
def ask(web: Engine, store: PlanStore, publish: Step) -> Callable[[Verb, int], UUID]:
    """Return a function that requests an action on a group with two published versions."""
    publish("s1")
    publish("s2", members=SECOND)

    def ask(verb: Verb, version: int) -> UUID:
        plan = store.get("orders", version)
        request = wanted(verb, plan, "kim", reason="it was calmer")
        acts.act(web, request)
        return request.id

    return ask


def taken(
    store: PlanStore, topic: Any, groups: Sequence[str] = ("orders",), **given: Any
) -> dict[str, str]:
    values = {"policies": AUTOMATIC, "live": following_second, "topic": topic, "options": OPTIONS}
    return take_up(store, groups, now=NOW, **{**values, **given})


def test_requested_rollback_is_proposed_once(
    store: PlanStore, topic: PlanTopic, ask: Callable[[Verb, int], UUID]
) -> None:
    """If a planner dies after proposing a rollback, the next planner does not propose it again."""
    act_id = ask("rollback", 1)
    assert taken(store, topic, ["others"]) == {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acts, "answer", lambda *_: pytest.fail("died"))
        with pytest.raises(pytest.fail.Exception):
            taken(store, topic)
    answer_ = taken(store, topic)["orders"]
    assert answer_ == "version 3, which goes back to version 1, is approved: proposed before"
    assert [row["state"] for row in plan_history(store, "orders")][2:] == ["approved"]
    made = store.requested(act_id)
    assert made is not None
    assert (made.version, made.rolled_back_from) == (3, 1)
    assert "(requested by kim)" in made.reason
    assert taken(store, topic) == {}
    done = acts.find_act(store.engine, act_id)
    assert done is not None
    assert (done.outcome, done.answer) == ("done", answer_)


def test_requested_withdrawal_is_carried_out(
    store: PlanStore, topic: PlanTopic, settings: Settings, ask: Callable[[Verb, int], UUID]
) -> None:
    """A requested withdrawal is carried out; if Kafka does not answer, the request stays open."""
    act_id = ask("withdraw", 2)
    dying = Dying(settings.kafka.model_copy(update={"plan_topic": topic.name}))
    with pytest.raises(KafkaUnavailableError):
        taken(store, dying)
    assert [act.id for act in acts.asked(store.engine)] == [act_id]
    assert taken(store, topic) == {"orders": "version 2 is withdrawn"}
    assert newest_record(topic).value == withdrawn_value("orders", 2)


def test_impossible_request_is_refused_with_the_reason(
    store: PlanStore, topic: PlanTopic, ask: Callable[[Verb, int], UUID]
) -> None:
    """An impossible request is answered with the reason, and not tried again."""
    act_id = ask("rollback", 1)

    def gone(group: str) -> Any:
        raise GroupError(f"group {group}: it does not exist")

    assert taken(store, topic, live=gone) == {
        "orders": "rollback refused: group orders: it does not exist"
    }
    done = acts.find_act(store.engine, act_id)
    assert done is not None
    assert (done.outcome, done.answer) == ("refused", "group orders: it does not exist")
    assert acts.asked(store.engine) == []
