"""Fixtures of the plan follower tests."""

from collections.abc import Callable, Iterator

import pytest

from fairlead.sandbox import Services
from tests.fairlead.followers.helpers import CLIENTS, Fleet


@pytest.fixture(params=CLIENTS)
def fleet(
    request: pytest.FixtureRequest,
    services: Services,
    unique_name: str,
    kafka_topic: Callable[..., str],
) -> Iterator[Fleet]:
    """Return a group that reads a topic of four partitions; the plan topic has five.

    Tests run once for each client library; the group starts consumers of this library by default.
    """
    plan_topic = kafka_topic(
        partitions=5, config={"cleanup.policy": "compact", "max.message.bytes": "10000000"}
    )
    fleet = Fleet(services, unique_name, plan_topic, [kafka_topic(partitions=4)], request.param)
    yield fleet
    fleet.close()
