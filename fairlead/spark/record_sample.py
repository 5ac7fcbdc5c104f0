"""Large samples of a topic's records, read with Spark's Kafka source.

Belongs here: reading planned runs in Spark, with the settings under their Java names. Does not:
where the source's jars come from (`fairlead.sandbox.jars`), small samples
(`fairlead.kafka.record_sample`).
"""

import json
import time
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from threading import Timer
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documents name it

from fairlead.domain.record_sample import CELLS, Int64, LogWindow, RecordSample, Runs
from fairlead.errors import KafkaUnavailableError
from fairlead.settings import ANYWHERE, KafkaSettings, SparkSettings
from fairlead.spark.session import HERE, build_session

#: Seconds after which reading is cancelled.
_MOST_S: Final = 600.0
#: Of `org.apache.kafka.common.security`; by the first letters of the mechanism.
_LOGIN: Final = {"PLAIN": "plain.PlainLoginModule", "SCRAM": "scram.ScramLoginModule"}
#: Settings that Java's client knows by the same name.
_SAME: tuple[str, ...] = (
    "bootstrap.servers",
    "security.protocol",
    "ssl.endpoint.identification.algorithm",
)


def source_session(settings: SparkSettings, jars: Sequence[Path]) -> SparkSession:
    """Return this process's session with the jars of Spark's Kafka source."""
    master = HERE if settings.master == ANYWHERE else settings.master
    given = {"spark.jars": ",".join(map(str, jars)), **settings.properties}
    changed = settings.model_copy(update={"master": master, "properties": given})
    return build_session(changed, app_name="fairlead keys")


def sample_by_spark(
    spark: SparkSession, kafka: KafkaSettings, window: LogWindow, runs: Runs, record_bytes: float
) -> RecordSample:
    """Read runs of a window in Spark, and count their keys in its tasks.

    Parameters
    ----------
    runs
        As `plan_runs` returns them.
    record_bytes
        Mean size of a record; Spark does not count what it fetches.

    Raises
    ------
    KafkaUnavailableError
        Spark cannot read the topic, or not within ten minutes.
    """
    began, turns = time.monotonic(), runs.turns()
    options = _options(kafka)
    frames = [
        _frame(spark, options, window.topic, runs, turn).withColumn("turn", F.lit(number))
        for number, turn in enumerate(turns)
    ]
    every = reduce(DataFrame.union, frames).groupBy("turn", "partition", "key")
    timer = Timer(_MOST_S, spark.sparkContext.cancelAllJobs)
    timer.start()
    try:
        found = every.agg(F.count("*").alias("count")).toArrow()
    except PySparkException as error:
        why = str(error).splitlines()[0]
        raise KafkaUnavailableError(f"Spark cannot read {window.topic}: {why}") from error
    finally:
        timer.cancel()
    run_of = np.zeros((len(turns), len(window.spans)), np.int64)
    for number, turn in enumerate(turns):
        run_of[number, runs.partition[turn]] = turn
    run = run_of[found["turn"].to_numpy(), found["partition"].to_numpy()]
    columns = [pa.array(run), *(found[name].combine_chunks() for name in CELLS.names[1:])]
    cells = pa.table(columns, names=CELLS.names).cast(CELLS)
    size = int(record_bytes * found["count"].to_numpy().sum())
    seconds = time.monotonic() - began
    return RecordSample(window, runs, cells, size, seconds, record_bytes, reader="Spark")


def _frame(
    spark: SparkSession, options: Mapping[str, str], topic: str, runs: Runs, turn: Int64
) -> DataFrame:
    """Return the keys of some runs; retention may have deleted a part meanwhile."""

    def at(offsets: Int64) -> str:
        of_partition = zip(runs.partition[turn].tolist(), offsets[turn].tolist(), strict=True)
        return json.dumps({topic: {str(partition): each for partition, each in of_partition}})

    reader = spark.read.format("kafka").options(
        **options,
        assign=json.dumps({topic: runs.partition[turn].tolist()}),
        startingOffsets=at(runs.begin),
        endingOffsets=at(runs.stop),
        failOnDataLoss="false",
    )
    return reader.load().select("partition", "key")


def _options(kafka: KafkaSettings) -> dict[str, str]:
    """Return the settings of Java's client; client certificates are not supported."""
    given = {name: str(value) for name, value in kafka.librdkafka().items()}
    found: dict[str, str] = {name: given[name] for name in _SAME if name in given}
    found["isolation.level"] = "read_committed"
    if "sasl.username" in given:
        mechanism = given.get("sasl.mechanism") or given.get("sasl.mechanisms", "PLAIN")
        module = f"org.apache.kafka.common.security.{_LOGIN[mechanism[:5]]}"
        name, password = (json.dumps(given[f"sasl.{each}"]) for each in ("username", "password"))
        login = f"{module} required username={name} password={password};"
        found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
    if "ssl.ca.location" in given:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": given["ssl.ca.location"]}
    return {f"kafka.{name}": value for name, value in found.items()}
