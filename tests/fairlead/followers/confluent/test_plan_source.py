"""Followers on confluent-kafka read the plan topic from a real broker."""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from fairlead.followers import FollowOptions
from fairlead.followers.confluent import plan_source
from fairlead.followers.confluent.plan_source import ConfluentSource, shared_reader
from fairlead.followers.core.plan_cache import PlanRecord
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import Settings
from tests.fairlead.followers.confluent.conftest import SOONER_S
from tests.fairlead.followers.helpers import make_plan
from tests.records import publish, signed_plan
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def plans(settings: Settings, unique_name: str) -> Iterator[PlanTopic]:
    """Return a separate plan topic, written in transactions like all plans."""
    with PlanTopic(settings.kafka.model_copy(update={"plan_topic": unique_name})) as topic:
        topic.ensure()
        yield topic


@pytest.fixture
def connection(settings: Settings) -> dict[str, Any]:
    """Return the connection settings."""
    return {"bootstrap.servers": settings.kafka.bootstrap_servers}


def send(plans: PlanTopic, version: int) -> None:
    plan = make_plan({"a": {"t": [0]}}, partition_counts={"t": 1}, group="g", version=version)
    publish(plans, "g", *signed_plan(plan, plans.origin))


def test_existing_plan_is_read_without_waiting_for_a_fetch(
    plans: PlanTopic, connection: dict[str, Any], patient_broker: dict[str, Any]
) -> None:
    """Readers recognise the end at once, although a transaction marker is the last entry."""
    send(plans, 1)
    options = FollowOptions(plans.name)
    with closing(shared_reader("g", {**connection, **patient_broker}, options)) as reader:
        eventually(lambda: reader.caught_up, "the plan topic is read", within_s=SOONER_S)
        assert reader.state.plan is not None


# clock: with these settings, a broker holds fetches for half a second
@pytest.mark.parametrize("config", [{}, {"socket.timeout.ms": 1500}])
def test_each_record_is_read_once_across_two_consumers(
    plans: PlanTopic,
    connection: dict[str, Any],
    config: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One record arrives between reaching the end and reporting it."""
    monkeypatch.setattr(plan_source, "_TIMEOUT_S", PATIENCE_S)
    send(plans, 1)
    source = ConfluentSource.open("g", {**connection, **config}, plans.name)
    assert source is not None
    read = list[PlanRecord]()
    with closing(source):

        def has_read(count: int) -> bool:
            read.extend(source.read(1.0))
            return len(read) >= count

        eventually(lambda: has_read(1), "the first record is read")
        time.sleep(1.0)  # clock: the client reaches the end meanwhile
        send(plans, 2)
        eventually(lambda: has_read(2), "what came after the end is read")
        eventually(lambda: has_read(2) and source.at_end(), "the end is told")
        send(plans, 3)
        eventually(lambda: has_read(3), "the other consumer reads on")
        read += source.read(1.0)
    assert [record.offset for record in read] == sorted({record.offset for record in read})
    assert len(read) == 3


def test_followers_of_the_same_plans_share_a_reader(
    plans: PlanTopic, connection: dict[str, Any]
) -> None:
    """A reader works until its last follower closes it; later followers get a new reader."""
    options = FollowOptions(plans.name)
    first = shared_reader("g", connection, options)
    assert shared_reader("g", dict(connection), options) is first
    other = shared_reader("h", connection, options)
    assert other is not first
    other.close()
    first.close()
    send(plans, 1)
    eventually(lambda: first.state.plan is not None, "the one that is left reads on")
    first.close()
    with closing(shared_reader("g", connection, options)) as fresh:
        assert fresh is not first
        eventually(lambda: fresh.state.plan is not None, "and another one reads")
