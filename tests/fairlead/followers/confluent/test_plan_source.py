"""Followers on confluent-kafka read the plan topic from a real broker."""

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
from tests.fairlead.followers.helpers import make_plan
from tests.records import publish, signed_plan
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka


@pytest.fixture
def plans(settings: Settings, unique_name: str) -> Iterator[PlanTopic]:
    """Return an empty plan topic, to which plans are sent in transactions."""
    with PlanTopic(settings.kafka.model_copy(update={"plan_topic": unique_name})) as topic:
        topic.ensure()
        yield topic


@pytest.fixture
def connection(settings: Settings) -> dict[str, Any]:
    """Return confluent-kafka's connection settings."""
    return {"bootstrap.servers": settings.kafka.bootstrap_servers}


def send(plans: PlanTopic, version: int) -> None:
    plan = make_plan({"a": {"t": [0]}}, partition_counts={"t": 1}, group="g", version=version)
    publish(plans, "g", *signed_plan(plan, plans.origin))


def test_each_record_is_read_once_and_the_end_is_noticed(
    plans: PlanTopic, connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the plan topic is noticed, although its last entry is a transaction marker."""
    monkeypatch.setattr(plan_source, "_TIMEOUT_S", PATIENCE_S)
    send(plans, 1)
    source = ConfluentSource.open("g", connection, plans.name)
    assert source is not None
    read = list[PlanRecord]()
    with closing(source):

        def has_read(count: int) -> bool:
            read.extend(source.read(1.0))
            return len(read) >= count

        eventually(lambda: has_read(1) and source.at_end(), "the first record is read")
        send(plans, 2)
        eventually(lambda: has_read(2), "what came after the end is read")
        read += source.read(1.0)
    assert [record.offset for record in read] == sorted({record.offset for record in read})
    assert len(read) == 2


def test_followers_of_the_same_plans_share_a_reader(
    plans: PlanTopic, connection: dict[str, Any]
) -> None:
    """Followers of a group share one reader. After all have closed it, a new reader is made."""
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
