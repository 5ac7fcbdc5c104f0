"""The jar runs on the required Java versions, and its bytes depend only on the sources."""

import struct
import zipfile
from pathlib import Path

import pytest

from fairlead.sandbox import plugin
from fairlead.sandbox.jars import kafka_classpath

EXAMPLE = Path(__file__).parents[2] / "examples" / "JavaConsumer.java"
JAVA_11, JAVA_17 = 55, 61


@pytest.mark.test_long(guarded_by="tests/jvm/test_jar.py::test_client_classes_need_only_java_11")
def test_builds_of_the_jar_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A published jar can therefore be verified."""
    built = plugin.plugin_jar().read_bytes()
    monkeypatch.setattr(plugin, "JAR", tmp_path / "again" / "fairlead-kafka.jar")
    assert plugin.plugin_jar().read_bytes() == built


def test_client_classes_need_only_java_11() -> None:
    """Kafka's clients need Java 11, too; only classes for brokers need a newer version."""
    with zipfile.ZipFile(plugin.plugin_jar()) as jar:
        versions = {
            name: struct.unpack(">H", jar.read(name)[6:8])[0]
            for name in jar.namelist()
            if name.endswith(".class")
        }
    assert versions["fairlead/kafka/PlanAssignor.class"] == JAVA_11
    newer = [name for name, version in versions.items() if version > JAVA_11]
    brokers = {path.stem for path in (plugin.PROJECT / "src/main/java17").rglob("*.java")}
    assert {Path(name).stem.partition("$")[0] for name in newer} <= brokers


def test_the_example_compiles(tmp_path: Path) -> None:
    """The example consumer compiles for Java 11 with Kafka's clients and the jar."""
    jars = [plugin.plugin_jar(), *kafka_classpath()]
    plugin.compile_java([EXAMPLE], jars, tmp_path, release=11)
    assert (tmp_path / "JavaConsumer.class").exists()
