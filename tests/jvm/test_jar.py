"""The jar's client classes need only Kafka's clients, and its bytes depend only on the sources."""

from pathlib import Path

import pytest

from fairlead.sandbox import plugin
from fairlead.sandbox.jars import kafka_classpath

EXAMPLE = Path(__file__).parents[2] / "examples" / "JavaConsumer.java"
CLIENTS = ("kafka-clients", "slf4j-api")


@pytest.mark.test_long(
    guarded_by="tests/jvm/test_jar.py::test_client_classes_need_only_kafkas_clients"
)
def test_builds_of_the_jar_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two builds have the same bytes, so anyone can verify a published jar."""
    built = plugin.plugin_jar().read_bytes()
    monkeypatch.setattr(plugin, "JAR", tmp_path / "again" / "fairlead-kafka.jar")
    assert plugin.plugin_jar().read_bytes() == built


def test_client_classes_need_only_kafkas_clients(tmp_path: Path) -> None:
    """PlanAssignor and MeteredConsumer compile without the classes of brokers."""
    jars = [jar for jar in kafka_classpath() if any(name in jar.name for name in CLIENTS)]
    classes = [
        plugin.SOURCES / "fairlead" / "kafka" / f"{name}.java"
        for name in ("PlanAssignor", "MeteredConsumer")
    ]
    plugin.compile_java(classes, [*jars, plugin.SOURCES], tmp_path, release=plugin.RELEASE)
    assert (tmp_path / "fairlead" / "kafka" / "MeteredConsumer.class").exists()


def test_the_example_compiles(tmp_path: Path) -> None:
    """The example consumer compiles with Kafka's clients and the jar."""
    jars = [plugin.plugin_jar(), *kafka_classpath()]
    plugin.compile_java([EXAMPLE], jars, tmp_path, release=plugin.RELEASE)
    assert (tmp_path / "JavaConsumer.class").exists()
