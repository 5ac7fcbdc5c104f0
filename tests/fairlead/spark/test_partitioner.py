"""The default partitioner as a Spark column."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from assignors.partitioner import partitions_of
from fairlead.spark.partitioner import key_partition

pytestmark = pytest.mark.spark


def test_puts_keys_where_the_producer_does(spark: SparkSession) -> None:
    """Strings and bytes agree with the vectorised hash; a null key has no partition."""
    keys = ["orders", "", "ключ", *(f"key-{number}" for number in range(200))]
    frame = spark.createDataFrame([(key,) for key in [*keys, None]], "key string")
    rows = frame.select(
        key_partition(sf.col("key"), 12).alias("text"),
        key_partition(sf.encode("key", "UTF-8"), 12).alias("binary"),
    ).collect()
    expected = [*partitions_of([key.encode() for key in keys], 12).tolist(), None]
    assert [row.text for row in rows] == expected
    assert [row.binary for row in rows] == expected


def test_predicts_how_keys_would_spread(spark: SparkSession) -> None:
    """Counting by the column answers what more partitions would do to a topic."""
    frame = spark.range(1000).select(sf.col("id").cast("string").alias("key"))
    counts = frame.groupBy(key_partition(sf.col("key"), 4).alias("partition")).count().collect()
    assert sorted(row.partition for row in counts) == [0, 1, 2, 3]
    assert sum(row["count"] for row in counts) == 1000
