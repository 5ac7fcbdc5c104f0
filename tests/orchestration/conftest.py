"""Fixtures of the tests of orchestration."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

import pytest

from fairlead.sandbox import Services
from fairlead.settings import Settings
from tests.conftest import KafkaTopic
from tests.fairlead.followers.helpers import Fleet
from tests.fairlead.kafka.conftest import (  # noqa: F401 - fixtures
    Commit,
    Join,
    commit,
    join,
    join_raw,
)
from tests.pipeline import SKEWED, Consumers, Pipeline, running_pipeline
from tests.recalled import CONSUMED

EVEN: Final = (5, 5, 5, 5)
MakeGroup = Callable[..., str]


class StartConsumers(Protocol):
    """Starts two consumers of a group with a backlog; without a plan they follow range."""

    def __call__(self, group: str, *, backlog: tuple[int, ...] = SKEWED) -> Consumers:
        """Start the group and return it once it has settled; its consumers end with the test."""


@pytest.fixture
def pipeline(
    settings: Settings, migrated: str, kafka_topic: KafkaTopic, tmp_path: Path
) -> Iterator[Pipeline]:
    """Return a pipeline with a separate database, warehouse and plan topic."""
    plan_topic = kafka_topic(config={"cleanup.policy": "compact"})
    with running_pipeline(settings, migrated, plan_topic, tmp_path) as pipeline:
        yield pipeline


@pytest.fixture
def start_consumers(
    services: Services,
    pipeline: Pipeline,
    kafka_topic: KafkaTopic,
    commit: Commit,  # noqa: F811
) -> Iterator[StartConsumers]:
    """Return a function that starts groups of consumers, each of which reads one topic.

    Consumers have committed a part of the topic; in earlier samples, those with a backlog fall
    behind.
    """
    with ExitStack() as stack:

        def start(group: str, *, backlog: tuple[int, ...] = SKEWED) -> Consumers:
            topic = kafka_topic(partitions=len(backlog))
            pipeline.produce(topic, [CONSUMED + records for records in backlog])
            commit(group, {(topic, number): CONSUMED for number in range(len(backlog))})
            fleet = Fleet(services, group, pipeline.settings.kafka.plan_topic, [topic])
            stack.callback(fleet.close)
            members = {name: fleet.join(name, enable_auto_commit=False) for name in ("one", "two")}
            consumers = Consumers(group, topic, members)
            consumers.settle(len(backlog))
            pipeline.recall(group)
            return consumers

        yield start


@pytest.fixture
def make_group(
    pipeline: Pipeline,
    kafka_topic: KafkaTopic,
    join: Join,  # noqa: F811
    commit: Commit,  # noqa: F811
    unique_name: str,
) -> MakeGroup:
    """Return a function that makes a group of two members, unbalanced or healthy.

    `make_group("a", trouble=True) -> its name`. Discovery covers only such groups.
    """
    pipeline.configure(f'[discovery]\ninclude = ["{unique_name}-*"]\n')

    def make(name: str, *, trouble: bool) -> str:
        group, topic = f"{unique_name}-{name}", kafka_topic(partitions=4)
        lags = SKEWED if trouble else EVEN
        pipeline.produce(topic, [CONSUMED + lag for lag in lags])
        commit(group, {(topic, number): CONSUMED for number in range(4)})
        join(group, [topic], 4, [{"client.id": "one"}, {"client.id": "two"}])
        return group

    return make


def sample(pipeline: Pipeline, *groups: str) -> str:
    """Store earlier samples of groups, take a sample, and return the tick's message."""
    for group in groups:
        pipeline.recall(group)
    return str(pipeline.sensor("group_samples").skip_message)
