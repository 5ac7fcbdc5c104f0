"""The Spark session of this process.

Belongs here: what every session of Fairlead needs. Does not: a cluster's own settings, which come
from `SparkSettings.properties` and win.
"""

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from fairlead.settings import SparkSettings
from fairlead.spark.launch import launch

_DEFAULTS: Final = {
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Times as Parquet and Arrow both know them, with their zone; Spark's default is a legacy.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Groups stay in the tasks they were dealt out to (`candidates`).
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL_DEFAULTS: Final = {
    "spark.log.level": "ERROR",
    # Most of what a JVM does in a short run is to compile itself; the work is done in Python.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # A few tasks a core, so that cores end together; Spark's default, 200, is for clusters.
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
}


def build_session(settings: SparkSettings, app_name: str = "fairlead") -> SparkSession:
    """Return this process's Spark session; the first call starts it, which takes seconds.

    A session that runs already is returned as it is: its properties were decided when it started.

    Parameters
    ----------
    settings
        Where Spark runs and with which properties: `local[*]`, a cluster's master (`spark://`,
        `k8s://`, `yarn`), or a Spark Connect server (`sc://`).
    app_name
        What Spark's own pages call the application.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    # Workers would take whichever python3 comes first on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if settings.master.startswith("sc://"):
        # The server's own properties were decided when it started; a session's are spark.sql.*.
        of_session = {name: value for name, value in _DEFAULTS.items() if ".sql." in name}
        return _built(SparkSession.builder.remote(settings.master), of_session, settings)
    properties = dict(_DEFAULTS)
    if settings.master.startswith("local"):
        properties |= _LOCAL_DEFAULTS
        os.environ.setdefault("SPARK_LOCAL_IP", _LOCAL_DEFAULTS["spark.driver.host"])
    launch({"spark.master": settings.master, **properties, **settings.properties})
    builder = SparkSession.builder.master(settings.master).appName(app_name)
    return _built(builder, properties, settings)


def _built(
    builder: SparkSession.Builder, properties: Mapping[str, str], settings: SparkSettings
) -> SparkSession:
    for name, value in {**properties, **settings.properties}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
