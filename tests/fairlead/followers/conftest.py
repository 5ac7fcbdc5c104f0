"""Fixtures of the follower tests."""

from collections.abc import Callable, Iterator

import pytest

from fairlead.sandbox import Services
from tests.fairlead.followers.helpers import Fleet


@pytest.fixture
def fleet(services: Services, unique_name: str, kafka_topic: Callable[..., str]) -> Iterator[Fleet]:
    """Return a group that reads one topic of four partitions and follows a plan topic of five."""
    plan_topic = kafka_topic(partitions=5, config={"cleanup.policy": "compact"})
    fleet = Fleet(services, unique_name, plan_topic, [kafka_topic(partitions=4)])
    yield fleet
    fleet.close()
