"""Start Spark's JVM with properties from a file, since every user can read command lines.

Belongs here: writing the properties to a private file while the JVM starts. Belongs elsewhere:
choosing the properties (`session`).
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import Final

from pyspark import SparkContext

#: Environment variable with the arguments that PySpark passes to spark-submit. PySpark also passes
#: every property that it knows, as `--conf name=value`.
_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
_SHELL: Final = "pyspark-shell"


def launch(properties: Mapping[str, str]) -> None:
    """Start this process's JVM with these properties; do nothing if the JVM already runs."""
    if SparkContext._gateway is not None:  # noqa: SLF001 - PySpark has no public name for it
        return
    before = os.environ.get(_ARGUMENTS)
    others = (before or _SHELL).strip().removesuffix(_SHELL)
    with properties_file(properties) as path:
        # With --properties-file, Spark reads conf/spark-defaults.conf only with
        # --load-spark-defaults.
        os.environ[_ARGUMENTS] = (
            f'{others} --load-spark-defaults --properties-file "{path}" {_SHELL}'
        )
        try:
            SparkContext._ensure_initialized()  # noqa: SLF001 - the same
        finally:
            del os.environ[_ARGUMENTS]
            if before is not None:
                os.environ[_ARGUMENTS] = before


@contextmanager
def properties_file(properties: Mapping[str, str]) -> Iterator[str]:
    """Write properties to a file that only this user may read, and yield its path.

    The file is removed when the `with` block ends.
    """
    with NamedTemporaryFile(
        "w", prefix="fairlead-spark-", suffix=".properties", encoding="ascii"
    ) as file:
        file.writelines(
            f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items()
        )
        file.flush()
        yield file.name


def _escaped(text: str) -> str:
    r"""Escape all characters except letters, digits and dots for java.util.Properties.

    Examples
    --------
    >>> print(_escaped(" 2\n"), _escaped("spark.a=é"))
    \u00202\u000a spark.a\u003d\u00e9
    """
    return re.sub(
        r"[^A-Za-z0-9.]",
        lambda match: "".join(
            f"\\u{unit}" for unit in match[0].encode("utf-16-be").hex(" ", 2).split()
        ),
        text,
    )
