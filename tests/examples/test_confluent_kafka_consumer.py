"""The confluent-kafka example, run as a user runs it."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import pytest
from confluent_kafka import Producer

from fairlead.kafka.plan_topic import PlanTopic
from fairlead.plans.document import record_headers
from fairlead.settings import Settings
from tests.fairlead.followers.helpers import make_plan

EXAMPLE = Path(__file__).parents[2] / "examples" / "confluent_kafka_consumer.py"


class Output(NamedTuple):
    """What the example prints, and what it logs."""

    lines: IO[str]
    log: IO[str]


@pytest.mark.kafka
def test_example_reads_what_the_plan_gives_it(
    settings: Settings, unique_name: str, kafka_topic: Callable[..., str]
) -> None:
    """Two processes print the messages of their shares of a published plan, and end on Ctrl-C."""
    broker = settings.kafka.bootstrap_servers
    topic = kafka_topic(partitions=3)
    shares = {"a": {topic: [2]}, "b": {topic: [0, 1]}}
    value = make_plan(shares, partition_counts={topic: 3}, group=unique_name).to_bytes()
    with PlanTopic(settings.kafka) as plans:
        plans.ensure()
        plans.publish(unique_name, value, record_headers(value))
    with ExitStack() as stack:
        outputs = {
            name: stack.enter_context(example(broker, unique_name, name, topic)) for name in shares
        }
        for name in shares:
            # The broker only knows range's shares: that the group has settled is in its own log.
            settled = "2 members: the assignment follows plan version 1"
            assert any(settled in line for line in outputs[name].log)
        producer = Producer({"bootstrap.servers": broker})
        for partition in range(3):
            producer.produce(topic, b"hello", partition=partition)
        assert producer.flush(30) == 0
        for name, share in shares.items():
            lines = {next(outputs[name].lines) for _ in share[topic]}
            assert lines == {f"{topic}-{partition} at 0 b'hello'\n" for partition in share[topic]}


@contextmanager
def example(*arguments: str) -> Iterator[Output]:
    """Run the example; at the end Ctrl-C makes it print its status and end."""
    with subprocess.Popen(
        [sys.executable, str(EXAMPLE), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield Output(process.stdout, process.stderr)
            process.send_signal(signal.SIGINT)
            last_words, _ = process.communicate(timeout=30)
            assert "plan_version=1" in last_words
            assert process.returncode == 0
        finally:
            process.kill()
