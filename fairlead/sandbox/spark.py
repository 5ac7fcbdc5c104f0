"""The warm Spark of a state directory: a Spark Connect server on this machine.

Belongs here: the server's properties, process and log, and whether a run uses the server. Belongs
elsewhere: the file by which processes find it (`fairlead.spark.warm`), and sessions
(`fairlead.spark.session`).

The server keeps no state. If it ends, Dagster repeats the steps that were running on it.
"""

import os
import secrets
import shutil
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from signal import Signals
from typing import Final

import psutil
import pyspark

from fairlead.errors import FileSystemError, SandboxError
from fairlead.sandbox import processes
from fairlead.sandbox.java import find_java
from fairlead.sandbox.kafka import free_ports
from fairlead.settings import ANYWHERE, SparkSettings
from fairlead.spark.launch import properties_file
from fairlead.spark.session import answers, server_properties
from fairlead.spark.warm import FOLDER, WarmServer, forget, made_of

_SPARK_HOME: Final = Path(pyspark.__path__[0])
_CLASS: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


class SparkServer(processes.Service):
    """The warm Spark of a state directory.

    Parameters
    ----------
    state_dir
        Directory whose folder `spark` has the server's log, and the server's address for runs.
    settings
        Spark's settings, including the properties with which to start the server.
    """

    def __init__(self, state_dir: Path, settings: SparkSettings) -> None:
        self._state_dir = state_dir.resolve()
        self._settings = settings
        self._home = self._state_dir / FOLDER
        super().__init__("Spark", self._home / "server.log", f"fairlead:{self._home}")

    def running(self) -> WarmServer | None:
        """Return the running server; None if no server runs."""
        server = WarmServer.recorded(self._state_dir)
        return server if server is not None and server.runs() else None

    def fits(self, server: WarmServer) -> bool:
        """Whether a server was started with the present code and the properties in the settings."""
        return server.made_of == made_of(self._settings.properties)

    def answers(self, server: WarmServer) -> bool:
        """Whether a server answers a query, which is sent through a new connection."""
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 - imports pandas

        return answers(lambda: SparkSession(server.url))

    def start(self) -> WarmServer:
        """Start the server unless it runs; replace a server that is outdated or does not answer.

        If several processes call this at the same time, one of them starts the server, and the
        others wait and use the same server.

        Raises
        ------
        SandboxError
            The server ends or does not answer in time; the message has the end of its log.
        ConfigurationError
            There is no usable Java.
        """
        with self._locked():
            server = self.running()
            if server is not None and self.fits(server) and self.answers(server):
                return server
            self.end(Signals.SIGTERM)
            return self._start()

    def stop(self) -> None:
        """Stop the server, even if another process started it; later runs start their own Spark."""
        if self._state_dir.exists():
            with self._locked():
                forget(self._state_dir)
                self.end(Signals.SIGTERM)

    def for_run(self, tell: Callable[[str], None]) -> WarmServer | None:
        """Return the warm server for a run; start it again if it has ended.

        Returns None if Spark runs elsewhere or no warm Spark was requested. Also returns None, and
        calls `tell` with the reason, if the server is outdated (see `fits`) or cannot be started.
        """
        recorded = WarmServer.recorded(self._state_dir)
        if recorded is None or self._settings.master != ANYWHERE:
            return None
        if not self.fits(recorded):
            tell("Spark was started with other code or properties: `fairlead spark up` replaces it")
            return None
        if recorded.runs():
            return recorded
        tell("Spark has ended: starting it again")
        try:
            return self.start()
        except (SandboxError, FileSystemError) as error:
            tell(str(error))
            return None

    def _locked(self) -> AbstractContextManager[None]:
        return processes.exclusively(self._state_dir, f"{FOLDER}.lock", f"Spark in {self._home}")

    def _start(self) -> WarmServer:
        find_java()  # gives a clearer error than Spark if Java is missing
        shutil.rmtree(self._home / "scratch", ignore_errors=True)
        (self._home / "scratch").mkdir(parents=True)
        self._home.chmod(0o700)
        self.rotate_log()
        token, (port,) = secrets.token_urlsafe(32), free_ports(1)
        properties = {
            **server_properties(self._settings),
            "spark.connect.authenticate.token": token,
            "spark.connect.grpc.binding.port": str(port),
            "spark.local.dir": str(self._home / "scratch"),
        }
        try:
            with properties_file(properties) as path:
                process = self._spawn(path)
                # Pass the process: a search could find Spark's launcher, which has the same mark.
                self.require_answer(lambda: _listens(process, port), process)
                server = WarmServer(
                    port=port,
                    token=token,
                    session_id=str(uuid.uuid4()),
                    pid=process.pid,
                    started_at=process.create_time(),
                    made_of=made_of(self._settings.properties),
                )
            server.record(self._state_dir)
        except BaseException:  # also after Ctrl-C
            self.end(Signals.SIGTERM)
            raise
        return server

    def _spawn(self, properties: str) -> psutil.Process:
        # Leave out the addresses and passwords of Kafka and Postgres, which workers do not need.
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")
        }
        return processes.spawn(
            [
                *(str(_SPARK_HOME / "bin" / "spark-class"), "org.apache.spark.deploy.SparkSubmit"),
                *("--properties-file", properties, "--name", self._mark),
                *("--class", _CLASS, "spark-internal"),
            ],
            log=self.log,
            cwd=self._home,
            env={
                **inherited,
                "SPARK_HOME": str(_SPARK_HOME),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": sys.executable,
            },
        )


def _listens(process: psutil.Process, port: int) -> bool:
    """Whether this process listens at a port; False if another program has taken the port."""
    with suppress(psutil.Error):
        return any(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for connection in process.net_connections("tcp")
        )
    return False
