"""The report on a topic's keys, for people and programs.

Belongs here: its formats, and the jars of Spark's Kafka source. Does not: its figures
(`fairlead.domain.key_report`).
"""

from pathlib import Path


def source_jars() -> list[Path]:
    """Return the jars of Spark's Kafka source, downloaded the first time."""
    from fairlead.sandbox import jars  # noqa: PLC0415 - PySpark, see above

    return jars.source_jars()
