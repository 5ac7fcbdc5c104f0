"""The classes that Spark's JVM loads, in a file that later JVMs map, to start in half the time.

Belongs here: making that file, by `python -m fairlead.spark.class_archive`, and the options by
which a JVM uses it. Does not: starting a JVM (`launch`), its other options (`session`).

It is Java's class data sharing (JEP 350). A JVM of another build than the one that made the file,
or with other jars, loads its classes as if there were no file.
"""

import sys
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark import SparkContext

#: In this Python environment, as the jars of PySpark are.
PATH: Final = Path(sys.prefix, "share", "fairlead", "spark.jsa")
_WRITTEN_WITHIN_S: Final = 120
#: Of a file that does not fit, and of classes that it cannot hold, Java warns on standard output.
_QUIET: Final = "-Xlog:all=error"


def java_options(path: Path = PATH) -> str:
    """Return the JVM options that use the file; none where there is no file."""
    return f'-XX:SharedArchiveFile="{path}" {_QUIET}' if path.exists() else ""


def main() -> int:
    """Run Spark once, and have its JVM write what it has loaded; the exit code is 0 if it did."""
    from fairlead.settings import SparkSettings  # noqa: PLC0415 - for this command alone
    from fairlead.spark.session import HERE, JAVA_OPTIONS, build_session  # noqa: PLC0415 - the same
    from fairlead.spark.warming import warm_up  # noqa: PLC0415 - the same

    PATH.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=PATH.parent) as folder:
        unfinished = Path(folder, PATH.name)
        options = f'{JAVA_OPTIONS} -XX:ArchiveClassesAtExit="{unfinished}" {_QUIET}'
        properties = {"spark.driver.extraJavaOptions": options}
        session = build_session(SparkSettings(master=HERE, properties=properties))
        warm_up(session, Path(folder))
        session.stop()
        if not _has_ended() or not unfinished.exists():
            sys.stderr.write("This Java wrote no archive of classes: Spark starts without it\n")
            return 1
        unfinished.replace(PATH)
    return 0


def _has_ended() -> bool:
    """End this process's JVM, and wait until it has written; False: it takes too long."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    gateway.shutdown()
    gateway.proc.stdin.close()  # a JVM of PySpark ends with its parent's end of this
    try:
        gateway.proc.wait(_WRITTEN_WITHIN_S)
    except TimeoutExpired:
        gateway.proc.kill()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
