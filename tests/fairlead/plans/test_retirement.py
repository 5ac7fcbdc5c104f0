"""Retirement, on a real store and a real topic: it is said, then recorded."""

from collections.abc import Callable

import pytest

from fairlead.errors import KafkaUnavailableError, PlanStateError
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.plans.record import retired_value
from fairlead.plans.retirement import retire
from fairlead.store import PlanStore, StoredPlan
from tests.fairlead.plans.plans import DiesAfterSending

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

Step = Callable[..., StoredPlan]


def test_retirement_sends_the_group_back_and_ends_what_waits(
    store: PlanStore, topic: PlanTopic, publish: Step, propose: Step
) -> None:
    """The newest record takes the version back; the history says why and where; nothing waits."""
    publish("s1")
    propose("s2")
    retired = retire(store, "orders", sender=topic, reason="too few consumers", actor="kim")
    record = topic.read("orders")
    assert record is not None
    assert (record.value, record.position) == (retired_value("orders", 1), retired.position)
    assert [row["state"] for row in store.history("orders")] == ["retired", "expired"]
    with pytest.raises(PlanStateError, match="group orders has no published plan to retire"):
        retire(store, "orders", sender=topic, reason="again")


def test_death_between_send_and_record_sends_it_again(
    store: PlanStore, topic: PlanTopic, publish: Step
) -> None:
    """The plan stays published, so that the next call finds it and sends again."""
    publish()
    with pytest.raises(KafkaUnavailableError):
        retire(store, "orders", sender=DiesAfterSending(topic), reason="broken")
    first = topic.read("orders")
    assert store.get("orders", 1).state == "published"
    again = retire(store, "orders", sender=topic, reason="broken")
    assert first is not None
    assert first.value == retired_value("orders", 1)
    assert again.position > first.position
    assert store.get("orders", 1).state == "retired"
