"""The example consumers, run as a user runs them."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest
from kafka import KafkaProducer

from fairlead.errors import GroupError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.plans.document import record_headers
from fairlead.settings import Settings
from tests.fairlead.followers.helpers import eventually, make_plan

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.kafka
@pytest.mark.parametrize("name", ["kafka_python_consumer.py", "aiokafka_consumer.py"])
def test_example_reads_what_the_plan_gives_it(
    name: str, settings: Settings, unique_name: str, kafka_topic: Callable[..., str]
) -> None:
    """Two processes print the records of their shares of a published plan, and end on Ctrl-C."""
    broker = settings.kafka.bootstrap_servers
    topic = kafka_topic(partitions=3)
    shares = {"a": {topic: [2]}, "b": {topic: [0, 1]}}
    value = make_plan(shares, partition_counts={topic: 3}, group=unique_name).to_bytes()
    with PlanTopic(settings.kafka) as plans:
        plans.ensure()
        plans.publish(unique_name, value, record_headers(value))
    with ExitStack() as stack:
        outputs = {
            member: stack.enter_context(example(name, broker, unique_name, member, topic))
            for member in shares
        }
        gateway = stack.enter_context(KafkaGateway(settings.kafka))
        eventually(lambda: owned(gateway, unique_name) == shares, "each process owns its share")
        producer = KafkaProducer(bootstrap_servers=broker)
        for partition in range(3):
            producer.send(topic, partition=partition, value=b"hello").get(timeout=30)
        producer.close()
        for member, share in shares.items():
            lines = {outputs[member].readline() for _ in share[topic]}
            assert lines == {f"{topic}-{partition} at 0 b'hello'\n" for partition in share[topic]}


@contextmanager
def example(name: str, *arguments: str) -> Iterator[IO[str]]:
    """Run an example; yield its output. At the end Ctrl-C makes it print its status and end."""
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
            process.send_signal(signal.SIGINT)
            last_words, _ = process.communicate(timeout=30)
            assert "plan_version=1" in last_words
            assert process.returncode == 0
        finally:
            process.kill()


def owned(gateway: KafkaGateway, group: str) -> dict[str, dict[str, list[int]]]:
    """Return what each member owns, as the planner sees it; nothing before anybody has joined."""
    try:
        members = gateway.live_group(group).members
    except GroupError:
        return {}
    return {
        member.name: {topic: list(share) for topic, share in member.partitions.items()}
        for member in members
    }
