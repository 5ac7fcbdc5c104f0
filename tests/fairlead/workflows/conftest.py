"""Fixtures of the workflows' tests: a plan topic, and the fixtures of the store's tests."""

from collections.abc import Iterator

import pytest

from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from tests.conftest import KafkaTopic


@pytest.fixture
def topic(settings: Settings, kafka_topic: KafkaTopic) -> Iterator[PlanTopic]:
    """Return a plan topic that only this test uses."""
    name = kafka_topic(config={"cleanup.policy": "compact"})
    with PlanTopic(settings.kafka.model_copy(update={"plan_topic": name})) as topic:
        yield topic
