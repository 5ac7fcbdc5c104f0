"""The report on a topic's keys, for people and programs.

Belongs here: what is shown, and bringing Spark's Kafka source. Does not: what is found
(`fairlead.domain.key_report`).
"""

from pathlib import Path


def source_jars() -> list[Path]:
    """Return the jars of Spark's Kafka source; for who needs them alone, since PySpark is large."""
    from fairlead.sandbox import jars  # noqa: PLC0415 - PySpark, see above

    return jars.source_jars()
