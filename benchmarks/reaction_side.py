"""One side of `reaction`: a checkout with its own interpreter, database, warehouse and Dagster.

Belongs here: starting commands and `dagster dev` of a checkout, asking its UI. Does not: what is
timed (`reaction`).
"""

import json
import os
import resource
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from fairlead.sandbox.postgres import Postgres
from tests.ui.running import free_port

ROOT: Final = Path(__file__).parents[1]
START_S: Final = 240.0
POLL_S: Final = 0.02
#: Where Dagster's own tables are; how a checkout's `dagster.yaml` is told.
STORAGE: Final = "\nstorage:\n  postgres:\n    postgres_url:\n      env: DAGSTER_POSTGRES_URL\n"
CONNECT: Final = """
import sys
from fairlead.settings import SparkSettings
from fairlead.spark.session import build_session
session = build_session(SparkSettings(properties={
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "%d",
}))
print(session.range(1).count(), flush=True)
sys.stdin.read()
session.stop()
"""
LAUNCH: Final = """
mutation($job: String!, $config: RunConfigData!, $tags: [ExecutionTag!]!) {
  launchRun(executionParams: {
    selector: {repositoryLocationName: "fairlead", repositoryName: "__repository__", jobName: $job},
    runConfigData: $config, executionMetadata: {tags: $tags}
  }) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}
"""


@dataclass
class Side:
    """A checkout that is measured.

    Parameters
    ----------
    name
        What the tables call it.
    root
        The checkout; its interpreter is `.venv/bin/python` there.
    folder
        For its settings, warehouse and Dagster's home.
    postgres
        Where its databases are made.
    bootstrap_servers
        Of the Kafka that both sides read.
    spark
        Where its runs find Spark.
    environment
        Of its processes.
    """

    name: str
    root: Path
    folder: Path
    postgres: Postgres
    bootstrap_servers: str
    spark: str = "local[*]"
    environment: dict[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make its databases and its settings."""
        self.folder.mkdir(parents=True)
        database = f"fairlead_{self.name}"
        with psycopg.connect(self.postgres.url("postgres"), autocommit=True) as connection:
            for name in (database, f"dagster_{self.name}"):
                connection.execute(f"CREATE DATABASE {name}".encode())
        (self.folder / "fairlead.toml").write_text(f"""
state_dir = "{self.folder}"
kafka.bootstrap_servers = "{self.bootstrap_servers}"
kafka.plan_topic = "plans-{self.name}"
postgres.url = "{self.postgres.url(database)}"
discovery.include = ["{self.name}-*"]

[[policies]]  # nothing arrives any more: soon there is time enough for what waits, by the default
objective = "PT10S"
horizon = "PT30S"
""")
        (self.folder / "dagster.yaml").write_text(
            (self.root / "dagster.yaml").read_text() + STORAGE
        )
        self.environment = {
            **{name: value for name, value in os.environ.items() if "FAIRLEAD" not in name},
            "FAIRLEAD_CONFIG": str(self.folder / "fairlead.toml"),
            "DAGSTER_HOME": str(self.folder),
            "DAGSTER_POSTGRES_URL": self.postgres.url(f"dagster_{self.name}", driver="psycopg2"),
            "PYSPARK_PYTHON": str(self.python),
        }
        self.run("fairlead", "db", "upgrade")

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.root / ".venv" / "bin" / "python"

    @property
    def warehouse(self) -> str:
        """Where its looks and snapshots are."""
        return str(self.folder / "warehouse")

    def command(self, *words: str) -> list[str]:
        """Return a command of its environment, `fairlead` or `python`."""
        return [str(self.root / ".venv" / "bin" / words[0]), *words[1:]]

    @property
    def surroundings(self) -> dict[str, str]:
        """The environment of its processes, Spark included."""
        return self.environment | {"FAIRLEAD_SPARK__MASTER": self.spark}

    def run(self, *words: str) -> dict[str, float]:
        """Run a command to its end; return how long it took, and how much of a processor.

        Raises
        ------
        RuntimeError
            It failed: the end of what it said.
        """
        began, spent = time.perf_counter(), cpu_s()
        done = subprocess.run(
            self.command(*words),
            cwd=self.root,
            env=self.surroundings,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: {words}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
        return {"s": time.perf_counter() - began, "cpu_s": cpu_s() - spent}

    def rows(self, statement: str, *values: object) -> list[Any]:
        """Return what its database answers."""
        return answered(self.postgres.url(f"fairlead_{self.name}"), statement, values)

    def wait_for_state(self, group: str, states: tuple[str, ...], until: float) -> float:
        """Wait until a group's plan is in one of these states; return when, by `perf_counter`."""
        url = self.postgres.url(f"fairlead_{self.name}")
        statement = b"SELECT 1 FROM fairlead.plan WHERE group_id = %s AND state = ANY(%s)"
        with psycopg.connect(url, autocommit=True) as connection:
            while not connection.execute(statement, (group, list(states))).fetchone():
                if time.perf_counter() > until:
                    raise TimeoutError(f"{self.name}: no plan of {group} is {' or '.join(states)}")
                time.sleep(POLL_S)
        return time.perf_counter()

    def events(self, run_id: str | None = None) -> list[tuple[str, str | None, float]]:
        """Return what Dagster recorded of a run: type, step, seconds since the epoch.

        None: of the newest run.
        """
        newest = "SELECT run_id FROM runs ORDER BY id DESC LIMIT 1"
        statement = (
            "SELECT dagster_event_type, step_key, extract(epoch FROM timestamp)::float8"
            f" FROM event_logs WHERE run_id = coalesce(%s, ({newest}))"
            " AND dagster_event_type IS NOT NULL ORDER BY id"
        )
        return answered(self.postgres.url(f"dagster_{self.name}"), statement, (run_id,))

    @contextmanager
    def warm_spark(self) -> Iterator[str]:
        """Run a Spark Connect server of this checkout, by `fairlead spark` where it has that."""
        if (self.root / "fairlead" / "sandbox" / "spark.py").exists():
            self.run("fairlead", "spark", "up")
            try:
                yield "auto"  # runs find it by themselves
            finally:
                self.run("fairlead", "spark", "down")
            return
        port = free_port()
        with subprocess.Popen(
            [str(self.python), "-c", CONNECT % port],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            process.stdout.readline()
            try:
                yield f"sc://127.0.0.1:{port}"
            finally:
                process.communicate()  # its input ends, and so it does

    @contextmanager
    def fork_server(self) -> Iterator[None]:
        """Run the fork server, as `make dev` does, where this checkout has one."""
        if not (self.root / "orchestration" / "forkserver.py").exists():
            yield
            return
        command = self.command("python", "-m", "orchestration.forkserver")
        listens = (self.folder / "runs.sock").exists
        with self._running("forkserver", command, self.environment, listens):
            yield

    @contextmanager
    def dagster_dev(self) -> Iterator[str]:
        """Run `dagster dev` as `make dev` does; yields the UI's address."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        arguments = ("dev", "-w", str(self.root / "workspace.yaml"), "-h", "127.0.0.1")
        command = self.command("dagster", *arguments, "-p", str(port))
        with self._running(
            "dev", command, self.surroundings, lambda: _answers(f"{url}/server_info")
        ):
            yield url

    @contextmanager
    def _running(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str],
        ready: Callable[[], bool],
    ) -> Iterator[None]:
        """Run a service from when it is ready to the block's end; its log has its name."""
        path = self.folder / f"{name}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.root, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                until = time.monotonic() + START_S
                while not ready():
                    if process.poll() is not None or time.monotonic() > until:
                        raise RuntimeError(f"{self.name}: see {path}")
                    time.sleep(0.1)
                yield
            finally:
                process.terminate()
                process.wait()

    def launch(
        self, url: str, job: str, *, config: Mapping[str, Any] | None = None, group: str | None
    ) -> str:
        """Launch a job as a click in the UI does; return the run's id."""
        tags = [{"key": "dagster/partition", "value": group}] if group else []
        variables = {"job": job, "config": config or {}, "tags": tags}
        answer = asked(url, LAUNCH, variables)["launchRun"]
        if answer["__typename"] != "LaunchRunSuccess":
            raise RuntimeError(f"{self.name}: {job}: {answer}")
        run_id: str = answer["run"]["runId"]
        return run_id

    def know(self, url: str, group: str) -> None:
        """Add a partition, as discovery does."""
        mutation = """
            mutation($key: String!) { addDynamicPartition(
              repositorySelector: {repositoryLocationName: "fairlead",
                                   repositoryName: "__repository__"},
              partitionsDefName: "cohort", partitionKey: $key) { __typename } }
        """
        asked(url, mutation, {"key": group})

    def ended(self, run_id: str, until: float) -> None:
        """Wait until a run has ended."""
        ends = {"PIPELINE_SUCCESS", "PIPELINE_FAILURE", "PIPELINE_CANCELED"}
        while not ends & {kind for kind, _, _ in self.events(run_id)}:
            if time.perf_counter() > until:
                raise TimeoutError(f"{self.name}: run {run_id} does not end")
            time.sleep(0.2)


def cpu_s() -> float:
    """Return the processor seconds of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answered(url: str, statement: str, values: tuple[object, ...]) -> list[Any]:
    """Return the rows of a query."""
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode(), values).fetchall()


def asked(url: str, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Ask Dagster's GraphQL interface, which is what the UI does."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{url}/graphql", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - our own server
        found = json.load(answer)
    if found.get("errors"):
        raise RuntimeError(str(found["errors"]))
    data: dict[str, Any] = found["data"]
    return data


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own server
            return True
    except OSError:
        return False
