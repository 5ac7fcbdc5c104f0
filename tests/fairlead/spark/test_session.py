"""The Spark session: one a process, with what Fairlead's tables need."""

import pytest
from pyspark.sql import SparkSession

from fairlead.settings import SparkSettings
from fairlead.spark.session import build_session

pytestmark = pytest.mark.spark


def test_a_running_session_is_used_again(spark: SparkSession) -> None:
    """Steps of one process share one session, whatever their settings say."""
    assert build_session(SparkSettings(master="local[1]")) is spark


def test_times_are_utc(spark: SparkSession) -> None:
    """Neither the machine's time zone nor Spark's legacy timestamps get into tables."""
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
