"""Builds Fairlead's jar for Kafka's Java clients and brokers from the sources in this repository.

Belongs here: compiling `jvm/` with only a JDK and the sandbox's jars. The same sources always give
the same bytes. Belongs elsewhere: the content of the jar (`jvm/README.md`).
"""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from filelock import FileLock

from fairlead.errors import ConfigurationError, SandboxError
from fairlead.sandbox import jars
from fairlead.sandbox.java import BRIEF, find_java

PROJECT: Final = Path(__file__).parents[2] / "jvm"
JAR: Final = PROJECT / "build" / "fairlead-kafka.jar"
SOURCES: Final = PROJECT / "src" / "main" / "java"
#: The oldest version of Java on which the jar runs. Kafka's brokers need the same version.
RELEASE: Final = 17
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time in a ZIP
_MANIFEST: Final = "Manifest-Version: 1.0\r\nAutomatic-Module-Name: fairlead.kafka\r\n\r\n"


def plugin_jar() -> Path:
    """Return the path of the jar; build the jar if it is missing or out of date.

    The jar is out of date if a source, this module or `jars.py` is newer.

    Raises
    ------
    SandboxError
        There are no sources, as in an installed package, or they do not compile.
    ConfigurationError
        There is no Java, or a Java without a compiler.
    """
    if not _sources():
        raise SandboxError(f"the jar cannot be built: {PROJECT} has no sources")
    inputs = [*SOURCES.rglob("*"), Path(__file__), Path(jars.__file__)]
    newest = max(path.stat().st_mtime for path in inputs)  # folders change if a source is removed
    JAR.parent.mkdir(exist_ok=True)
    with FileLock(JAR.with_suffix(".lock")):
        if not JAR.exists() or JAR.stat().st_mtime < newest:
            with TemporaryDirectory() as scratch:
                _compile(Path(scratch))
                _pack(Path(scratch), JAR)
    return JAR


def plugin_if_any() -> Path | None:
    """Call `plugin_jar`, but return None if there are no sources or no compiler.

    Raises
    ------
    SandboxError
        The sources do not compile.
    """
    return plugin_jar() if _sources() and os.access(_compiler(), os.X_OK) else None


def compile_java(
    sources: Iterable[Path], classpath: Iterable[Path], target: Path, *, release: int
) -> None:
    """Compile Java sources; warnings count as errors.

    Raises
    ------
    SandboxError
        The sources do not compile; the message has the compiler's output.
    ConfigurationError
        There is no compiler.
    """
    compiler = _compiler()
    if not os.access(compiler, os.X_OK):
        raise ConfigurationError(
            f"There is no {compiler}: a JRE is installed, without a compiler. Install a JDK "
            "(Debian: openjdk-17-jdk-headless)"
        )
    command = [
        *(str(compiler), *(f"-J{option}" for option in BRIEF)),
        *("--release", str(release), "-Xlint:all", "-Werror", "-encoding", "UTF-8"),
        *("-classpath", os.pathsep.join(map(str, classpath)), "-d", str(target)),
        *map(str, sources),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if result.returncode:
        raise SandboxError(f"The Java sources do not compile:\n{result.stderr or result.stdout}")


def _compiler() -> Path:
    return find_java().with_name("javac")


def _sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.java"))


def _compile(target: Path) -> None:
    classpath = jars.kafka_classpath(lambda line: print(line, file=sys.stderr))  # noqa: T201 - make jar
    compile_java(_sources(), classpath, target, release=RELEASE)


def _pack(classes: Path, jar: Path) -> None:
    """Write the jar; the same classes always give the same bytes."""
    entries = {
        str(path.relative_to(classes)): path.read_bytes() for path in classes.rglob("*.class")
    }
    new = jar.with_suffix(".new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), _MANIFEST)
        for name in sorted(entries):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entries[name])
    new.replace(jar)
