"""Kafka's test classes and JUnit, downloaded once per user.

Spark resolves no artifact that has a classifier, as test classes have; so its Ivy is asked itself.
"""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark
from filelock import FileLock

from fairlead.sandbox.jars import KAFKA_VERSION, cache_dir, kafka_classpath
from fairlead.sandbox.java import find_java

JUNIT_VERSION = "1.13.4"
ATTEMPTS = 3
# The clients' assignors, the server's, and what builds the server's topics in its tests.
TESTED = ("kafka-clients", "kafka-group-coordinator", "kafka-coordinator-common")
TESTS = """
    <dependency org="org.apache.kafka" name="{name}" rev="{version}" transitive="false">
      <artifact name="{name}" type="jar" ext="jar" m:classifier="test"/>
    </dependency>"""
IVY = f"""
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="fairlead" module="suites"/>
  <dependencies>
{"".join(TESTS.format(name=name, version=KAFKA_VERSION) for name in TESTED)}
    <dependency org="org.junit.platform" name="junit-platform-console-standalone"
                rev="{JUNIT_VERSION}" transitive="false">
      <artifact name="junit-platform-console-standalone" type="jar" ext="jar"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def suite_classpath() -> list[Path]:
    """Return the jars of Kafka, of its test classes, and of JUnit."""
    target = cache_dir() / f"kafka-suites-{KAFKA_VERSION}-{JUNIT_VERSION}-{len(TESTED)}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if not target.exists():
            _download(target)
    return [*sorted(target.glob("*.jar")), *kafka_classpath()]


def _download(target: Path) -> None:
    (ivy,) = (Path(pyspark.__path__[0]) / "jars").glob("ivy-*.jar")
    with TemporaryDirectory(dir=target.parent) as scratch:
        wanted = Path(scratch) / "ivy.xml"
        wanted.write_text(IVY)
        jars = Path(scratch) / "jars"
        command = [
            *(str(find_java()), "-jar", str(ivy), "-ivy", str(wanted)),
            *("-cache", str(Path(scratch) / "cache")),
            *("-retrieve", f"{jars}{os.sep}[artifact]-[revision](-[classifier]).[ext]"),
        ]
        for _ in range(ATTEMPTS):  # what arrived is kept
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=600, check=False
            )
            if not result.returncode and len(list(jars.glob("*.jar"))) == len(TESTED) + 1:
                break
        else:
            raise RuntimeError(f"Kafka's suites could not be downloaded:\n{result.stdout[-2000:]}")
        shutil.move(jars, target)
