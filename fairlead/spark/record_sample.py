"""Large samples of a topic's records, read with Spark's Kafka source.

Belongs here: reading planned runs in Spark, with the settings under their Java names. Does not:
downloading the source's jars (`fairlead.sandbox.jars`), small samples
(`fairlead.kafka.record_sample`).
"""

import json
import time
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from threading import Timer
from typing import Final

import numpy as np
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documents name it

from fairlead.domain.record_sample import CELLS, Int64, LogWindow, RecordSample, Runs
from fairlead.errors import KafkaUnavailableError
from fairlead.settings import KafkaSettings, Settings
from fairlead.spark.session import build_session

#: Seconds after which reading is cancelled.
_MOST_S: Final = 600.0
#: Login modules of `org.apache.kafka.common.security`, by the first letters of the SASL mechanism.
_LOGIN: Final = {"PLAIN": "plain.PlainLoginModule", "SCRAM": "scram.ScramLoginModule"}
#: Settings that have the same name in librdkafka and in Java's client.
_SAME: Final = ("bootstrap.servers", "security.protocol", "ssl.endpoint.identification.algorithm")


def sample_by_spark(
    settings: Settings, jars: Sequence[Path], window: LogWindow, runs: Runs, record_bytes: float
) -> RecordSample:
    """Read runs of a window in Spark, and count their keys in its tasks.

    Parameters
    ----------
    jars
        The jars of Spark's Kafka source.
    record_bytes
        Mean size of a record, from a small sample: Spark does not count what it reads.

    Raises
    ------
    KafkaUnavailableError
        Spark cannot read the topic, or not within ten minutes.
    """
    properties = {"spark.jars": ",".join(map(str, jars)), **settings.spark.properties}
    own = settings.spark.model_copy(update={"properties": properties})
    spark = build_session(own, app_name="fairlead keys")
    began = time.monotonic()

    def records(turn: int) -> DataFrame:
        """Return run and key of a turn's records; retention may have deleted some meanwhile."""
        numbers = np.flatnonzero(runs.stop[turn] > runs.begin[turn]).tolist()

        def at(offsets: Int64) -> str:
            return json.dumps({window.topic: {str(n): int(offsets[turn, n]) for n in numbers}})

        reader = spark.read.format("kafka").options(
            **_options(settings.kafka),
            assign=json.dumps({window.topic: numbers}),
            startingOffsets=at(runs.begin),
            endingOffsets=at(runs.stop),
            failOnDataLoss="false",
        )
        run = F.col("partition") + turn * len(window.spans)
        return reader.load().select(run.alias("run"), "key")

    every = reduce(DataFrame.union, map(records, range(len(runs.begin))))
    timer = Timer(_MOST_S, spark.sparkContext.cancelAllJobs)
    timer.start()
    try:
        counts = every.groupBy("run", "key").agg(F.count("*").alias("count")).toArrow()
    except PySparkException as error:
        why = str(error).splitlines()[0]
        raise KafkaUnavailableError(f"Spark cannot read {window.topic}: {why}") from error
    finally:
        timer.cancel()
    size = int(record_bytes * counts["count"].to_numpy().sum())
    seconds = time.monotonic() - began
    cells = counts.cast(CELLS)
    return RecordSample(window, runs, cells, size, seconds, record_bytes, reader="Spark")


def _options(kafka: KafkaSettings) -> dict[str, str]:
    """Return the settings for Java's client; client certificates are not supported."""
    settings = {name: str(value) for name, value in kafka.librdkafka().items()}
    options: dict[str, str] = {name: settings[name] for name in _SAME if name in settings}
    options["isolation.level"] = "read_committed"
    if "sasl.username" in settings:
        mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms", "PLAIN")
        module = f"org.apache.kafka.common.security.{_LOGIN[mechanism[:5]]}"
        name, password = (json.dumps(settings[f"sasl.{each}"]) for each in ("username", "password"))
        login = f"{module} required username={name} password={password};"
        options |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
    if "ssl.ca.location" in settings:
        options |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": settings["ssl.ca.location"],
        }
    return {f"kafka.{name}": value for name, value in options.items()}
