"""The Spark session of this process.

Belongs here: where Spark runs, and default properties, which `SparkSettings.properties` override.
Belongs elsewhere: starting a warm server (`fairlead.sandbox.spark`).
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fairlead.settings import ANYWHERE, SparkSettings
from fairlead.spark.launch import launch
from fairlead.spark.warm import WarmServer

HERE: Final = "local[*]"
_DEFAULTS: Final = {
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: Options for less compilation in the JVM, because runs are short and most work is done in Python.
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOCAL_DEFAULTS: Final = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    # Require a secret on the JVM's ports: they deserialise Java objects, and every user of this
    # machine can reach them.
    "spark.authenticate": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # A few tasks per core, so that all cores finish at the same time. Spark's default is 200.
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),
}
_SERVER_DEFAULTS: Final = {
    "spark.master": HERE,
    "spark.driver.memory": "1g",
    # A JVM that runs out of memory ends. Then the next run starts another JVM.
    "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} "
    "-XX:MaxMetaspaceSize=512m -XX:+ExitOnOutOfMemoryError",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    # The session never expires: all runs share it, and they may be hours apart.
    "spark.connect.session.manager.defaultSessionTimeout": "-1",
    "spark.python.daemon.module": "fairlead.spark.daemon",
}

#: Number of retries. Few, because a local server answers immediately unless it has ended; PySpark's
#: default is to retry for ten minutes.
_RETRIES: Final = 2
#: Seconds to wait for a trivial query, which may have to wait for the tasks of other runs.
ANSWERS_WITHIN_S: Final = 60.0

#: The warm server that has this process's session; None: the session is not on a warm server.
_on: WarmServer | None = None


def build_session(
    settings: SparkSettings, app_name: str = "fairlead", *, warm: WarmServer | None = None
) -> SparkSession:
    """Return this process's Spark session; the first call starts it, which takes seconds.

    Returns a running session unchanged: its properties were fixed when it started.

    Parameters
    ----------
    settings
        Where Spark runs, and its properties. Spark runs on `local[*]`, a cluster's master
        (`spark://`, `k8s://`, `yarn`), a Spark Connect server (`sc://`), or `auto`: the warm server
        if there is one, otherwise this process.
    app_name
        Name of the application in Spark's pages.
    warm
        The warm server for `auto`; None if there is none.
    """
    running = running_session()
    if running is not None:
        return running
    # Otherwise workers would use the first python3 on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if warm is not None:
        return _on_server(warm, settings)
    master = HERE if settings.master == ANYWHERE else settings.master
    if master.startswith("sc://"):
        # The server's properties were fixed when it started; a session can set only spark.sql.*.
        return _built(SparkSession.builder.remote(master), _of_sessions(_DEFAULTS), settings)
    properties = dict(_DEFAULTS)
    if master.startswith("local"):
        properties |= _LOCAL_DEFAULTS
        os.environ.setdefault("SPARK_LOCAL_IP", _LOCAL_DEFAULTS["spark.driver.host"])
    launch({"spark.master": master, **properties, **settings.properties})
    builder = SparkSession.builder.master(master).appName(app_name)
    return _built(builder, properties, settings)


def running_session() -> SparkSession | None:
    """Return this process's session; None if there is none, or the session's server has ended."""
    running = SparkSession.getActiveSession()
    if running is not None and _on is not None and not _on.runs():
        _leave(running)
        return None
    return running


def answers(session: Callable[[], Any]) -> bool:
    """Whether Spark answers a trivial query in time; `session` returns the session to use."""
    answer = SimpleQueue[int]()

    def ask() -> None:
        rows = 0
        with suppress(Exception):  # after an error, `rows` is 0
            rows = session().range(1).count()
        answer.put(rows)

    Thread(target=ask, daemon=True).start()  # in a thread, since a query may hang
    try:
        return answer.get(timeout=ANSWERS_WITHIN_S) == 1
    except Empty:
        return False


def server_properties(settings: SparkSettings) -> dict[str, str]:
    """Return the properties with which to start a warm server."""
    return {**_DEFAULTS, **_LOCAL_DEFAULTS, **_SERVER_DEFAULTS, **settings.properties}


def _on_server(warm: WarmServer, settings: SparkSettings) -> SparkSession:
    """Open a session on a warm server."""
    global _on  # noqa: PLW0603 - a process has one session, as PySpark has it
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - imports pandas

    builder = SparkSession.builder.remote(warm.url)
    # A session can set only spark.sql.*; the other properties were fixed when the server started.
    own = settings.model_copy(update={"properties": _of_sessions(settings.properties)})
    session = _built(builder, _of_sessions(_DEFAULTS | _LOCAL_DEFAULTS), own)
    client: Any = session.client
    client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
    _on = warm
    return session


def _leave(session: Any) -> None:
    """Close a session whose server has ended, so that another session can be opened."""
    global _on  # noqa: PLW0603 - as above
    _on = None
    session.release_session_on_close = False  # no request to the server, which has ended
    with suppress(PySparkException):
        session.stop()
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


def _of_sessions(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name.startswith("spark.sql.")}


def _built(
    builder: SparkSession.Builder, properties: Mapping[str, str], settings: SparkSettings
) -> SparkSession:
    for name, value in {**properties, **settings.properties}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
