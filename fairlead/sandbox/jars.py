"""Apache Kafka's own jars, downloaded once per user.

Belongs here: the names and digests of the artifacts, and the cache of complete downloads. Belongs
elsewhere: running anything with the jars.

The Ivy in PySpark resolves and downloads the artifacts. So no build tool is needed, and downloads
use the proxies and mirrors that are configured for Spark.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import platformdirs
import pyspark
from filelock import FileLock

from fairlead.common.disk import room_in
from fairlead.errors import SandboxError
from fairlead.sandbox.java import find_java

KAFKA_VERSION: Final = "4.4.0"
PACKAGES: Final = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",  # Kafka depends on slf4j 1.7 but on no backend
)
# Kafka Connect would be a quarter of the download. The broker and its group tools do not need it.
EXCLUDED: Final = tuple(
    f"org.apache.kafka:connect-{part}" for part in ("runtime", "api", "transforms", "json")
)
DOWNLOAD_TIMEOUT_S: Final = 900
#: File with the SHA-256 of every jar, as written by sha256sum. A jar with another digest, for
#: example from a mirror, is refused.
DIGESTS: Final = Path(__file__).with_name("kafka.sha256")
_SPARK_HOME: Final = Path(pyspark.__path__[0])


def cache_dir() -> Path:
    """Return the user's directory for downloads, which `FAIRLEAD_CACHE_DIR` can set."""
    configured = os.environ.get("FAIRLEAD_CACHE_DIR")
    return Path(configured) if configured else platformdirs.user_cache_path("fairlead")


def kafka_classpath(progress: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Return the jars of Kafka's broker, clients and tools; the first call downloads them.

    Parameters
    ----------
    progress
        Called with a line for the user when a download begins.

    Raises
    ------
    SandboxError
        The download failed; the message has the reason.
    ConfigurationError
        There is no usable Java.
    """
    target = cache_dir() / f"kafka-{KAFKA_VERSION}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with room_in(target.parent, otherwise=""), FileLock(f"{target}.lock"):
        if not target.exists():  # an existing folder is complete
            progress(f"Downloading Apache Kafka {KAFKA_VERSION} (40 MB, once) to {target}")
            _download(target)
    jars = sorted(target.glob("*.jar"))
    # Kafka needs the Scala library. Spark does not download it, because Spark contains it.
    return [*jars, *sorted((_SPARK_HOME / "jars").glob("scala-library-2.13.*.jar"))]


def _download(target: Path) -> None:
    """Download the artifacts into `target` by running an empty Spark application."""
    find_java()  # gives a clearer error than Spark if Java is missing
    with TemporaryDirectory(dir=target.parent) as scratch:
        application = Path(scratch) / "nothing.py"
        application.touch()
        command = [
            str(_SPARK_HOME / "bin" / "spark-submit"),
            *("--conf", f"spark.jars.ivy={scratch}"),
            *("--packages", ",".join(PACKAGES)),
            *("--exclude-packages", ",".join(EXCLUDED)),
            str(application),
        ]
        result = _resolve(command)
        if result.returncode:  # again, for the files that failed (often only one)
            result = _resolve(command)
        if result.returncode:
            log = target.parent / "download.log"
            log.write_text(result.stdout)
            raise SandboxError(
                f"Apache Kafka's jars could not be downloaded: {_reason(result.stdout)}. Is the "
                f"network reachable? Spark's output is in {log}."
            )
        check_digests(Path(scratch) / "jars")
        (Path(scratch) / "jars").rename(target)


def check_digests(folder: Path) -> None:
    """Compare the SHA-256 of each jar in a folder with the list of Kafka's jars.

    Raises
    ------
    SandboxError
        A jar has another digest; the message has its name.
    """
    lines = DIGESTS.read_text(encoding="utf-8").splitlines()
    known = {name: digest for digest, name in map(str.split, lines)}
    for jar in sorted(folder.glob("*.jar")):
        with jar.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if known.get(jar.name) != digest:
            raise SandboxError(
                f"{jar.name} is not the jar of Apache Kafka {KAFKA_VERSION}: its SHA-256 is "
                f"{digest}. Check the repositories that are configured for Spark's packages"
            )


def _resolve(command: list[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command,
            env={**os.environ, "SPARK_HOME": str(_SPARK_HOME), "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=DOWNLOAD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(
            f"Apache Kafka's jars did not arrive within {DOWNLOAD_TIMEOUT_S} s: is the network "
            "slow or blocked?"
        ) from error


def _reason(output: str) -> str:
    """Return the reason of a failed download from Spark's output."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    exceptions = [line for line in lines if "Exception: " in line]
    return (exceptions or lines or ["no output"])[-1].rpartition("Exception: ")[2][:300]
