"""Retirement, on a real store and a real topic: it is intended, said, then recorded."""

from collections.abc import Callable

import pytest

from fairlead.errors import KafkaUnavailableError, PlanStateError
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from fairlead.store import PlanStore, StoredPlan
from fairlead.store.outbox import Outbox
from fairlead.wire.record import retired_value
from fairlead.workflows.retirement import retire
from tests.fairlead.workflows.plans import OPTIONS, Dying

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Step = Callable[..., StoredPlan]


def test_retirement_sends_the_group_back_and_ends_what_waits(
    store: PlanStore, topic: PlanTopic, publish: Step, propose: Step
) -> None:
    """The newest record takes the version back; the history says why and where; nothing waits."""
    publish("s1")
    propose("s2")
    retired = retire(store, "orders", topic=topic, options=OPTIONS, reason="too few", actor="kim")
    record = topic.read("orders")
    assert record is not None
    assert (record.value, record.position) == (retired_value("orders", 1), retired.position)
    assert [row["state"] for row in store.history("orders")] == ["retired", "expired"]
    with pytest.raises(PlanStateError, match="group orders has no published plan to retire"):
        retire(store, "orders", topic=topic, options=OPTIONS, reason="again")


def test_death_between_send_and_record_is_finished_by_who_asks_again(
    store: PlanStore, topic: PlanTopic, settings: Settings, publish: Step
) -> None:
    """Nothing is sent twice: the topic has it, and the database learns of it."""
    publish()
    dying = Dying(settings.kafka.model_copy(update={"plan_topic": topic.name}))
    with pytest.raises(KafkaUnavailableError):
        retire(store, "orders", topic=dying, options=OPTIONS, reason="broken")
    first = topic.read("orders")
    assert first is not None
    assert store.get("orders", 1).state == "published"
    again = retire(store, "orders", topic=topic, options=OPTIONS, reason="broken")
    assert again.position == first.position
    assert store.get("orders", 1).state == "retired"
    assert Outbox(store.engine).outstanding() == []
