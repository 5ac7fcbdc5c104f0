"""An installation of Fairlead and Dagster from this checkout, with temporary services.

Belongs here: settings and databases, running commands, Dagster's daemon and `dagster dev`, and
queries to Dagster's API. Belongs elsewhere: timing (`reaction`, `reaction_chain`).
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg

from benchmarks.harness import ROOT
from benchmarks.services import folder, wait_until
from fairlead.sandbox import Sandbox
from tests.ui.running import free_port

#: Seconds after which waiting for a process or state fails.
PATIENCE_S: Final = 600.0
STOP_S: Final = 60.0
WORKSPACE: Final = str(ROOT / "workspace.yaml")
SETTINGS: Final = """
state_dir = "{folder}"
kafka.bootstrap_servers = "{servers}"
postgres.url = "{url}"
"""
STORAGE: Final = "\nstorage:\n  postgres:\n    postgres_url:\n      env: DAGSTER_POSTGRES_URL\n"
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
ADD_PARTITION: Final = """
mutation($key: String!) {
  addDynamicPartition(
    repositorySelector: {repositoryLocationName: "fairlead", repositoryName: "__repository__"},
    partitionsDefName: "cohort", partitionKey: $key
  ) { __typename }
}
"""

#: An event of a Dagster run: type, step, seconds since the epoch.
Event = tuple[str, str | None, float]


@contextmanager
def installed(settings: str) -> Iterator["Installation"]:
    """Start Kafka and Postgres, and yield an installation that uses them."""
    with folder() as place:
        sandbox = Sandbox(place / "services")
        with sandbox as services:
            yield Installation(place, sandbox, services.bootstrap_servers, settings)


class Installation:
    """Settings, databases and a Dagster home.

    Parameters
    ----------
    place
        A folder for settings, the warehouse and Dagster's home.
    sandbox
        The running services.
    servers
        Addresses of the brokers.
    settings
        Lines to add to `fairlead.toml`, which has the addresses of the services.
    """

    def __init__(self, place: Path, sandbox: Sandbox, servers: str, settings: str) -> None:
        self._place, self.servers = place, servers
        self.warehouse = str(place / "warehouse")
        self.url = sandbox.postgres.url("fairlead")
        self._dagster_url = sandbox.postgres.url("dagster")
        #: `spark.master` for commands and runs; "auto" uses a running Spark server if there is one.
        self.spark = "auto"
        place.joinpath("fairlead.toml").write_text(
            SETTINGS.format(folder=place, servers=servers, url=self.url) + settings
        )
        place.joinpath("dagster.yaml").write_text((ROOT / "dagster.yaml").read_text() + STORAGE)
        self._environment = {
            **{name: value for name, value in os.environ.items() if "FAIRLEAD" not in name},
            "FAIRLEAD_CONFIG": str(place / "fairlead.toml"),
            "DAGSTER_HOME": str(place),
            "DAGSTER_POSTGRES_URL": sandbox.postgres.url("dagster", driver="psycopg2"),
            "PYSPARK_PYTHON": sys.executable,
        }
        self.run("fairlead", "db", "upgrade")

    def start(self, *words: str, in_a_group: bool = False) -> "subprocess.Popen[bytes]":
        """Start a program of this Python environment, optionally in a new process group."""
        return subprocess.Popen(
            [str(Path(sys.executable).with_name(words[0])), *words[1:]],
            cwd=ROOT,
            env=self._environment | {"FAIRLEAD_SPARK__MASTER": self.spark},
            start_new_session=in_a_group,
        )

    def run(self, *words: str) -> dict[str, float]:
        """Run a command until it ends; return its duration and its processor time.

        Raises
        ------
        CalledProcessError
            The command failed.
        """
        began, spent = time.perf_counter(), cpu_s()
        with self.start(*words) as process:
            code = process.wait()
        if code:
            raise subprocess.CalledProcessError(code, words)
        return {"s": time.perf_counter() - began, "cpu_s": cpu_s() - spent}

    def rows(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a query to Fairlead's database."""
        return _answered(self.url, statement, values)

    def events(self, run_id: str | None = None) -> list[Event]:
        """Return the events of a run, or of the newest run if `run_id` is None."""
        newest = "SELECT run_id FROM runs ORDER BY id DESC LIMIT 1"
        statement = (
            "SELECT dagster_event_type, step_key, extract(epoch FROM timestamp)::float8"
            f" FROM event_logs WHERE run_id = coalesce(%s, ({newest}))"
            " AND dagster_event_type IS NOT NULL ORDER BY id"
        )
        return _answered(self._dagster_url, statement, (run_id,))

    def wait_for_state(self, group: str, *states: str) -> float:
        """Wait until a group's plan is in one of `states`; return the time, by `perf_counter`."""
        statement = b"SELECT 1 FROM fairlead.plan WHERE group_id = %s AND state = ANY(%s)"
        with psycopg.connect(self.url, autocommit=True) as connection:
            wait_until(
                lambda: connection.execute(statement, (group, [*states])).fetchone() is not None,
                f"a plan of {group} is {' or '.join(states)}",
                within_s=PATIENCE_S,
                every_s=0.02,
            )
        return time.perf_counter()

    @contextmanager
    def warm_spark(self) -> Iterator[None]:
        """Until the end of the context, run a Spark server, so that runs need not start Spark."""
        self.run("fairlead", "spark", "up")
        try:
            yield
        finally:
            self.run("fairlead", "spark", "down")

    @contextmanager
    def dagster_dev(self) -> Iterator[str]:
        """Run `dagster dev` as `make dev` does; yield the UI's address."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        words = ("dagster", "dev", "-w", WORKSPACE, "-h", "127.0.0.1", "-p", str(port))
        with self.running(*words, ready=lambda: _answers(f"{url}/server_info")):
            yield url

    @contextmanager
    def running(self, *words: str, ready: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Start a service, wait until it is ready, and end it at the end of the context."""
        with self.start(*words, in_a_group=True) as process:
            try:
                wait_until(
                    lambda: process.poll() is not None or ready(),
                    f"{words} is ready",
                    within_s=PATIENCE_S,
                    every_s=0.1,
                )
                if process.poll() is not None:
                    raise RuntimeError(f"{words} ended")
                yield
            finally:
                _end(process)

    def launch(
        self,
        url: str,
        job: str,
        *,
        config: Mapping[str, Any] | None = None,
        group: str | None = None,
    ) -> str:
        """Launch a job with the query that the UI sends after a click; return the run's id."""
        tags = [{"key": "dagster/partition", "value": group}] if group else []
        variables = {"job": job, "config": config or {}, "tags": tags}
        answer = _graphql(url, LAUNCH, variables)["launchRun"]
        if answer["__typename"] != "LaunchRunSuccess":
            raise RuntimeError(f"{job}: {answer}")
        run_id: str = answer["run"]["runId"]
        return run_id

    def know(self, url: str, group: str) -> None:
        """Add a Dagster partition for the group, as the sensor that discovers groups does."""
        _graphql(url, ADD_PARTITION, {"key": group})

    def wait_for_end(self, run_id: str) -> None:
        """Wait until a run has ended."""
        ends = {"PIPELINE_SUCCESS", "PIPELINE_FAILURE", "PIPELINE_CANCELED"}
        wait_until(
            lambda: bool(ends & {kind for kind, _, _ in self.events(run_id)}),
            f"run {run_id} ends",
            within_s=PATIENCE_S,
            every_s=0.2,
        )


def cpu_s() -> float:
    """Return the processor seconds of all children that have ended, and of their descendants."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _answered(url: str, statement: str, values: tuple[object, ...]) -> list[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode(), values).fetchall()


def _graphql(url: str, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Query Dagster's GraphQL API, as the UI does."""
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


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            continue
        return
