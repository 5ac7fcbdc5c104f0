"""Kafka's test classes and JUnit, downloaded once per user.

Spark resolves no artifacts with a classifier, which test classes have; so this calls Ivy.
"""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark
from filelock import FileLock

from fairlead.sandbox.jars import cache_dir, kafka_classpath
from fairlead.sandbox.java import find_java

#: Test classes of the clients 4.4.0 are not published, and these need the classes beside them.
SUITES_VERSION = "4.3.1"
JUNIT_VERSION = "1.13.4"
ATTEMPTS = 3
# The clients' assignors, the server's, and what builds the server's topics in its tests.
TESTED = ("kafka-clients", "kafka-group-coordinator", "kafka-coordinator-common")
BESIDE = ("kafka-group-coordinator-api", "kafka-server-common")
CLASSES = """
    <dependency org="org.apache.kafka" name="{name}" rev="{version}" transitive="false">
      <artifact name="{name}" type="jar" ext="jar"/>{tests}
    </dependency>"""
TESTS = """
      <artifact name="{name}" type="jar" ext="jar" m:classifier="test"/>"""
WANTED = "".join(
    CLASSES.format(
        name=name,
        version=SUITES_VERSION,
        tests=TESTS.format(name=name) if name in TESTED else "",
    )
    for name in (*TESTED, *BESIDE)
)
JARS = WANTED.count("<artifact") + 1
IVY = f"""
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="fairlead" module="suites"/>
  <dependencies>
{WANTED}
    <dependency org="org.junit.platform" name="junit-platform-console-standalone"
                rev="{JUNIT_VERSION}" transitive="false">
      <artifact name="junit-platform-console-standalone" type="jar" ext="jar"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def suite_classpath() -> list[Path]:
    """Return the jars of Kafka's test classes, of what they test, of JUnit, and of Kafka."""
    target = cache_dir() / f"kafka-suites-{SUITES_VERSION}-{JUNIT_VERSION}-{JARS}"
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
            if not result.returncode and len(list(jars.glob("*.jar"))) == JARS:
                break
        else:
            raise RuntimeError(f"Kafka's suites could not be downloaded:\n{result.stdout[-2000:]}")
        shutil.move(jars, target)
