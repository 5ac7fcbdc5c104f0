"""The cache of Kafka's jars, resolved by Ivy from a folder instead of the network."""

from pathlib import Path

import pytest

from fairlead.errors import SandboxError
from fairlead.sandbox import jars

pytestmark = pytest.mark.long

SMALL = "org.slf4j:slf4j-simple:1.7.36"
SMALL_JAR = "org.slf4j_slf4j-simple-1.7.36.jar"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache; its only artifact will be resolved from the existing jars."""
    source = jars.kafka_classpath()[0].parent
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="local"/><resolvers><filesystem name="local">'
        f'<artifact pattern="{source}/[organisation]_[module]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars.ivySettings {settings}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("FAIRLEAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "PACKAGES", (SMALL,))
    return tmp_path / "cache" / f"kafka-{jars.KAFKA_VERSION}"


def test_jars_are_resolved_into_an_empty_cache(cache: Path) -> None:
    """Afterwards, the cache has only the resolved jars."""
    assert (cache / SMALL_JAR) in jars.kafka_classpath()
    assert [path.name for path in cache.iterdir()] == [SMALL_JAR]


def test_a_jar_with_another_digest_is_refused(tmp_path: Path) -> None:
    """A changed jar of Kafka, or a jar that is not one of Kafka's, raises an error."""
    good = jars.kafka_classpath()[0].parent / SMALL_JAR
    (tmp_path / SMALL_JAR).write_bytes(good.read_bytes())
    jars.check_digests(tmp_path)
    for name, value in ((SMALL_JAR, good.read_bytes() + b" "), ("other.jar", b"anything")):
        (tmp_path / name).write_bytes(value)
        with pytest.raises(SandboxError, match=f"{name} is not the jar of Apache Kafka"):
            jars.check_digests(tmp_path)
        (tmp_path / SMALL_JAR).write_bytes(good.read_bytes())
