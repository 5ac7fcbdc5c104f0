"""What looks saw of partitions before a snapshot, a row a partition, as lag looks back on it.

Belongs here: choosing looks and taking them apart in Spark. Does not: keeping them
(`fairlead.looks.archive`), nor what follows from them (`lag`).
"""

from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from fairlead.looks.archive import HISTORY, LookArchive

#: Rates and statuses look back so far, and at so many looks before it where there are fewer within.
LOOKED_BACK: Final = timedelta(hours=1)
LEAST: Final = 2
#: Rows that looking back may cost: of a fleet fewer looks are read, evenly apart.
ROWS: Final = 3_000_000

_EACH: Final = (
    "flatten(transform(arrays_zip(topics, counts), one ->"
    " transform(sequence(0, one.counts - 1), number -> struct(one.topics AS topic, number))))"
)


def earlier_offsets(
    spark: SparkSession, archive: LookArchive, before: datetime, partitions: int
) -> DataFrame | None:
    """Read what looks before a snapshot saw.

    Of each group: the looks of the last hour, or where its looks or planning runs are further
    apart than that, the last two of the day.

    Parameters
    ----------
    before
        When the snapshot was taken; time-zone-aware.
    partitions
        How many the snapshot has: what a look costs.

    Returns
    -------
    DataFrame
        snapshot_at, group, topic, partition, begin_offset, end_offset and committed_offset, as in
        the table `offsets`. None: there are no looks.
    """
    paths = archive.paths(before - HISTORY, before)
    if not paths:
        return None
    looks = spark.read.parquet(*paths).where(
        (sf.col("at") < sf.lit(before)) & (sf.col("at") >= sf.lit(before - HISTORY))
    )
    in_group = Window.partitionBy("group")
    most = max(LEAST, ROWS // max(1, partitions))
    recent = looks.dropDuplicates(["group", "at"]).withColumn(
        "_place", sf.row_number().over(in_group.orderBy(sf.desc("at")))
    )
    recent = recent.where(
        (sf.col("at") >= sf.lit(before - LOOKED_BACK)) | (sf.col("_place") <= LEAST)
    )
    stride = sf.ceil(sf.count("*").over(in_group) / most)
    chosen = recent.withColumn("_stride", stride).where("(_place - 1) % _stride = 0")
    laid_out = chosen.where("size(counts) > 0").withColumn("each", sf.expr(_EACH))
    zipped = sf.arrays_zip("each", "begin", "end", "committed")
    rows = laid_out.select("group", "at", sf.inline(zipped))
    return rows.select(
        sf.col("at").alias("snapshot_at"),
        "group",
        "each.topic",
        sf.col("each.number").alias("partition"),
        *(_known(name).alias(f"{name}_offset") for name in ("begin", "end", "committed")),
    )


def _known(name: str) -> Column:
    return sf.when(sf.col(name) >= 0, sf.col(name))
