"""The Java that Kafka and Spark run on.

Belongs here: finding Java, and refusing a Java that is too old. Belongs elsewhere: running Java
programs.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from fairlead.errors import ConfigurationError

MINIMUM_VERSION: Final = 17
#: Options for a JVM that runs for seconds and would spend most of its time compiling: the simplest
#: garbage collector, and only the fast compiler.
BRIEF: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_ADVICE: Final = (
    f"Install Java {MINIMUM_VERSION} or newer (Debian: openjdk-17-jre-headless), or name it with "
    "JAVA_HOME."
)


def find_java() -> Path:
    """Return the path of `java` in `JAVA_HOME` or, if that is not set, on `PATH`.

    Raises
    ------
    ConfigurationError
        There is no Java, or the Java does not run or is older than Java 17.
    """
    java = _candidate()
    version = _version_of(java)
    if version < MINIMUM_VERSION:
        raise ConfigurationError(f"{java} is Java {version}, which is too old. {_ADVICE}")
    return java


def _candidate() -> Path:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if not os.access(java, os.X_OK):
            raise ConfigurationError(f"JAVA_HOME is {home}, which has no bin/java. {_ADVICE}")
        return java
    if path := shutil.which("java"):
        return Path(path)
    raise ConfigurationError(f"No java on PATH. {_ADVICE}")


def _version_of(java: Path) -> int:
    """Read the version from the JDK's file `release`; without it, start a JVM, which is slower."""
    release = java.resolve().parents[1] / "release"
    if release.is_file() and (stated := _RELEASE.search(release.read_text(errors="replace"))):
        return int(stated[1])
    try:
        result = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"{java} does not run: {error}. {_ADVICE}") from error
    output = result.stderr + result.stdout
    if result.returncode or not (match := _VERSION.search(output)):
        raise ConfigurationError(
            f"{java} -version prints no version: {output.strip()[:200]!r}. {_ADVICE}"
        )
    return int(match[1])
