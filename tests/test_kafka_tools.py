"""Kafka's own tools and Java sources on its jars."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.errors import SandboxError
from fairlead.sandbox import Services
from tests.kafka_tools import run_java_source, run_kafka_tool

TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"
GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.mark.kafka
def test_kafka_tool_prints_what_it_found(
    services: Services, kafka_topic: Callable[..., str]
) -> None:
    """Kafka's topic tool lists a topic of the embedded broker."""
    topic = kafka_topic()
    listed = run_kafka_tool(
        TOPIC_COMMAND, "--bootstrap-server", services.bootstrap_servers, "--list"
    )
    assert topic in listed.splitlines()


@pytest.mark.kafka
def test_group_tool_runs(services: Services) -> None:
    """The consumer-group tool, whose lag column is the reference, runs on the resolved jars."""
    servers = ("--bootstrap-server", services.bootstrap_servers)
    assert "test-nobody" not in run_kafka_tool(GROUP_COMMAND, *servers, "--list")


@pytest.mark.long
def test_failed_tool_says_why() -> None:
    """The end of a failing tool's output is in the error."""
    with pytest.raises(SandboxError, match="no-such-option is not a recognized option"):
        run_kafka_tool(TOPIC_COMMAND, "--no-such-option")


@pytest.mark.long
def test_java_source_runs_on_kafkas_jars(tmp_path: Path) -> None:
    """A Java file can use Kafka's classes, its arguments and its standard input."""
    source = tmp_path / "Echo.java"
    source.write_text(
        "public class Echo { public static void main(String[] args) throws Exception {"
        " System.out.println(new org.apache.kafka.common.TopicPartition(args[0], 3));"
        " System.in.transferTo(System.out); } }"
    )
    assert run_java_source(source, "orders", standard_input="text") == "orders-3\ntext"


@pytest.mark.long
def test_java_source_that_does_not_compile_says_why(tmp_path: Path) -> None:
    """The compiler's words are in the error."""
    source = tmp_path / "Wrong.java"
    source.write_text("public class Wrong { nonsense }")
    with pytest.raises(SandboxError, match="identifier"):
        run_java_source(source)


@pytest.mark.long
def test_tool_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """A deadline ends a program that hangs."""
    source = tmp_path / "Hang.java"
    source.write_text(
        "public class Hang { public static void main(String[] args) throws Exception {"
        " Thread.sleep(600000); } }"
    )
    with pytest.raises(SandboxError, match="longer than 2 s"):
        run_java_source(source, timeout_s=2)
