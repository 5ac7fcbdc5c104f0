"""A Spark session for large samples.

Belongs here: bringing Spark's Kafka source to a session. Does not: reading
(`fairlead.spark.record_sample`).
"""

from typing import TYPE_CHECKING

from fairlead.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(settings: SparkSettings) -> "SparkSession":
    """Return a session with Spark's Kafka source, whose jars are downloaded the first time."""
    from fairlead.sandbox.jars import source_jars  # noqa: PLC0415 - Spark, for who needs it
    from fairlead.spark.record_sample import source_session  # noqa: PLC0415 - the same

    return source_session(settings, source_jars())
