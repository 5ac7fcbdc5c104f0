"""The jar runs on the required Java versions, and its bytes depend only on the sources."""

import struct
import zipfile
from pathlib import Path

import pytest

from fairlead.sandbox import plugin
from fairlead.sandbox.jars import kafka_classpath

EXAMPLE = Path(__file__).parents[2] / "examples" / "JavaConsumer.java"
JAVA_11, JAVA_17 = 55, 61


@pytest.mark.test_long(guarded_by="tests/jvm/test_jar.py::test_clients_need_java_11_alone")
def test_the_jar_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two builds have equal bytes, so that a published jar can be verified."""
    built = plugin.plugin_jar().read_bytes()
    monkeypatch.setattr(plugin, "JAR", tmp_path / "again" / "fairlead-kafka.jar")
    assert plugin.plugin_jar().read_bytes() == built


def test_clients_need_java_11_alone() -> None:
    """All classes except those for brokers run on Java 11, as Kafka's clients do."""
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
