"""Fixtures of the orchestration's tests."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from fairlead.sandbox import Services
from fairlead.settings import Settings
from tests.conftest import KafkaTopic
from tests.fairlead.followers.helpers import Fleet
from tests.fairlead.kafka.conftest import Commit, commit, join, join_raw  # noqa: F401 - fixtures
from tests.pipeline import SKEWED, Consumers, Pipeline, running_pipeline
from tests.recalled import CONSUMED


class StartConsumers(Protocol):
    """Starts a group of two consumers that follow plans, on a backlog, under `range` at first."""

    def __call__(self, group: str, *, backlog: tuple[int, ...] = SKEWED) -> Consumers:
        """Return the group once it has settled; it ends with the test."""


@pytest.fixture
def pipeline(
    settings: Settings, migrated: str, kafka_topic: KafkaTopic, tmp_path: Path
) -> Iterator[Pipeline]:
    """Return a pipeline with a database, a warehouse and a plan topic of its own."""
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
    """Return a function that starts groups of consumers which read a topic each.

    They have read some of it before, and those that are behind have fallen behind since.
    """
    with ExitStack() as stack:

        def start(group: str, *, backlog: tuple[int, ...] = SKEWED) -> Consumers:
            topic = kafka_topic(partitions=len(backlog))
            pipeline.produce(topic, [CONSUMED + records for records in backlog])
            commit(group, {(topic, number): CONSUMED for number in range(len(backlog))})
            fleet = Fleet(services, group, pipeline.settings.kafka.plan_topic, [topic])
            stack.callback(fleet.close)
            members = {name: fleet.join(name, enable_auto_commit=False) for name in ("one", "two")}
            consumers = Consumers(group, topic, members, fleet)
            consumers.settle(len(backlog))
            pipeline.recall(group)
            return consumers

        yield start
