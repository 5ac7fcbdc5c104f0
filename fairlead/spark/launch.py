"""Start Spark's JVM without its properties on the command line, which every user can read.

Belongs here: the file that has them instead while the JVM starts. Does not: the properties
(`session`).
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark import SparkContext

#: PySpark passes this to spark-submit, and appends each property that it knows as
#: `--conf name=value`.
_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_SHELL: Final = "pyspark-shell"


def launch(properties: Mapping[str, str]) -> None:
    """Start this process's JVM with these properties; has no effect if it already runs."""
    if SparkContext._gateway is not None:  # noqa: SLF001 - PySpark has no public name for it
        return
    with _properties_file(properties) as path, _submitted_with(path):
        SparkContext._ensure_initialized()  # noqa: SLF001 - the same


def as_java_properties(properties: Mapping[str, str]) -> str:
    r"""Write properties as java.util.Properties reads them.

    Examples
    --------
    >>> print(as_java_properties({"spark.a": r"C:\x", "spark.b": " two\nlines"}), end="")
    spark.a=C:\\x
    spark.b=\ two\nlines
    """
    lines = []
    for name, value in properties.items():
        written = _escaped(value)
        # Unescaped leading blanks would belong to the separator.
        written = f"\\{written}" if written.startswith(" ") else written
        key = _escaped(name)
        for separator in " :=#!":
            key = key.replace(separator, f"\\{separator}")
        lines.append(f"{key}={written}\n")
    return "".join(lines)


def _escaped(text: str) -> str:
    for character, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(character, written)
    return text


@contextmanager
def _properties_file(properties: Mapping[str, str]) -> Iterator[Path]:
    """Write a file that only this user may read (0600), and remove it on leaving."""
    handle, name = tempfile.mkstemp(prefix="fairlead-spark-", suffix=".properties")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(as_java_properties(properties))
        yield Path(name)
    finally:
        Path(name).unlink()


@contextmanager
def _submitted_with(path: Path) -> Iterator[None]:
    before = os.environ.get(_ARGUMENTS)
    others = (before or _SHELL).strip().removesuffix(_SHELL)
    # With such a file, Spark reads its conf/spark-defaults.conf only on request.
    os.environ[_ARGUMENTS] = f'{others} --load-spark-defaults --properties-file "{path}" {_SHELL}'
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ARGUMENTS]
        else:
            os.environ[_ARGUMENTS] = before
