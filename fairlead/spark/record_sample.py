"""Large samples of a topic's records, by Spark's Kafka source.

Belongs here: reading planned runs in Spark, and what Java's client calls the settings. Does not:
where the source's jars come from (`fairlead.sandbox.jars`), small samples
(`fairlead.kafka.record_sample`).
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from threading import Timer
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documents name it

from fairlead.domain.record_sample import CELLS, LogWindow, RecordSample, Runs
from fairlead.errors import ConfigurationError, KafkaUnavailableError, TopicError
from fairlead.settings import ANYWHERE, KafkaSettings, SparkSettings
from fairlead.spark.session import HERE, build_session

_LOGIN: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
#: Settings that Java's client knows by the same name.
_SAME: Final = ("bootstrap.servers", "security.protocol", "ssl.endpoint.identification.algorithm")


def source_session(settings: SparkSettings, jars: Sequence[Path]) -> SparkSession:
    """Return this process's session with Spark's Kafka source; a Connect server has its own jars.

    Parameters
    ----------
    jars
        Of the source.
    """
    master = HERE if settings.master == ANYWHERE else settings.master
    given = {"spark.jars": ",".join(map(str, jars)), **settings.properties}
    changed = settings.model_copy(update={"master": master, "properties": given})
    return build_session(changed, app_name="fairlead keys")


def sample_by_spark(
    spark: SparkSession,
    kafka: KafkaSettings,
    window: LogWindow,
    runs: Runs,
    *,
    seconds: float,
    record_bytes: float,
) -> RecordSample:
    """Read runs of a window in Spark, which counts their keys where they are read.

    Parameters
    ----------
    runs
        As `plan_runs` returns them.
    seconds
        Spark is interrupted after so long.
    record_bytes
        Mean size of a record; Spark does not count what it fetches.

    Raises
    ------
    TopicError
        It takes longer.
    KafkaUnavailableError
        Spark cannot read the topic.
    """
    began = time.monotonic()
    options = _options(kafka)
    turns = list(_turns(runs))
    frames = [
        _frame(spark, options, window.topic, runs, turn).withColumn("turn", F.lit(number))
        for number, turn in enumerate(turns)
    ]
    counted = (
        reduce(DataFrame.union, frames)
        .groupBy("turn", "partition", "key")
        .agg(F.count("*").alias("count"))
    )
    timer = Timer(seconds, lambda: spark.sparkContext.cancelAllJobs())
    timer.start()
    try:
        found = counted.toArrow()
    except PySparkException as error:
        if time.monotonic() - began >= seconds:
            raise TopicError(
                f"Topic {window.topic}: Spark has not read {int((runs.stop - runs.begin).sum()):,} "
                f"records in {seconds:.0f} s. Ask for fewer with --records"
            ) from error
        line = str(error).splitlines()[0]
        raise KafkaUnavailableError(f"Spark cannot read {window.topic}: {line}") from error
    finally:
        timer.cancel()
    run_of = np.zeros((len(turns), len(window.spans)), np.int64)
    for number, turn in enumerate(turns):
        run_of[number, runs.partition[turn]] = turn
    run = run_of[found["turn"].to_numpy(), found["partition"].to_numpy()]
    columns = [pa.array(run), found["key"].combine_chunks(), found["count"].combine_chunks()]
    cells = pa.table(columns, names=CELLS.names).cast(CELLS)
    size = int(record_bytes * sum(found["count"].to_pylist()))
    seconds = time.monotonic() - began
    return RecordSample(window, runs, cells, size, seconds, record_bytes, reader="Spark")


def _turns(runs: Runs) -> Iterator[np.typing.NDArray[np.int64]]:
    """Yield the indexes of runs, so that each has one of a partition at most."""
    order = np.argsort(runs.partition, kind="stable")
    ranks = np.empty(len(order), np.int64)
    sizes = np.bincount(runs.partition)
    ranks[order] = np.concatenate([np.arange(size) for size in sizes])
    for rank in range(int(sizes.max(initial=0))):
        yield np.flatnonzero(ranks == rank)


def _frame(
    spark: SparkSession,
    options: Mapping[str, str],
    topic: str,
    runs: Runs,
    turn: np.typing.NDArray[np.int64],
) -> DataFrame:
    """Return the keys of some runs; retention may have deleted a part meanwhile."""

    def at(offsets: np.typing.NDArray[np.int64]) -> str:
        of_partition = zip(runs.partition[turn].tolist(), offsets[turn].tolist(), strict=True)
        return json.dumps({topic: {str(partition): each for partition, each in of_partition}})

    assigned = json.dumps({topic: runs.partition[turn].tolist()})
    read = spark.read.format("kafka").options(**options, assign=assigned, failOnDataLoss="false")
    offsets = {"startingOffsets": at(runs.begin), "endingOffsets": at(runs.stop)}
    return read.options(**offsets).load().select("partition", "key")


def _options(kafka: KafkaSettings) -> dict[str, str]:
    """Return the settings of Java's client.

    Raises
    ------
    ConfigurationError
        A setting has no equal there.
    """
    given = {name: str(value) for name, value in kafka.librdkafka().items()}
    found = {name: given[name] for name in _SAME if name in given}
    if "sasl.username" in given:
        mechanism = given.get("sasl.mechanism") or given.get("sasl.mechanisms", "PLAIN")
        name, password = (
            json.dumps(given.get(f"sasl.{each}", "")) for each in ("username", "password")
        )
        found["sasl.mechanism"] = mechanism
        found["sasl.jaas.config"] = (
            f"{_LOGIN[mechanism]} required username={name} password={password};"
        )
    if "ssl.ca.location" in given:
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": given["ssl.ca.location"]}
    if "ssl.certificate.location" in given:
        raise ConfigurationError(
            "kafka.properties: ssl.certificate.location is not passed on to Spark. Ask for at most "
            "1,000,000 records, which are read without it"
        )
    return {f"kafka.{name}": value for name, value in found.items()} | {
        "kafka.isolation.level": "read_committed"
    }
