"""`fairlead up`: errors at its start, and restart and end of its parts."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest
from pydantic import SecretStr

from fairlead.archive import SampleArchive
from fairlead.errors import ConfigurationError
from fairlead.sandbox.recorded_processes import recorded, still_running
from fairlead.sandbox.supervisor import Part, Supervisor
from fairlead.settings import PostgresSettings, Settings
from fairlead.surfaces.links import LOCATION
from fairlead.surfaces.pipeline import HOME_VARIABLE, furnish
from fairlead.surfaces.up import At, require_free
from fairlead.surfaces.up.running import code, daemon, pages
from tests.programs import FAIRLEAD
from tests.ui.running import free_port
from tests.waiting import PATIENCE_S, eventually

PARTS = ("code", "daemon", "webserver", "pages")
LAUNCH = """
mutation Launch($parameters: ExecutionParams!) {
  launchRun(executionParams: $parameters) { ... on LaunchRunSuccess { run { runId } } }
}
"""


def on(settings: Settings, url: str, state_dir: Path) -> Settings:
    """Return the settings with this database and state directory."""
    database = PostgresSettings(url=SecretStr(url))
    return settings.model_copy(update={"postgres": database, "state_dir": state_dir})


def test_error_of_a_used_port_names_its_option(tmp_path: Path) -> None:
    """If a port is in use, `up` fails, and the error names the option that sets the port.

    `up` chooses no other port, because scrapers would not find it.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = At(dagster_port=free_port(), pages_port=taken.getsockname()[1])
        with pytest.raises(ConfigurationError, match=r"choose another with --port"):
            require_free(tmp_path, at, pytest.fail)


def test_processes_of_a_killed_run_are_ended(tmp_path: Path) -> None:
    """`up` ends processes that a killed earlier `up` has left behind."""
    lines: list[str] = []
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with (
        subprocess.Popen(command, start_new_session=True) as left,
        recorded(tmp_path, "dagster", left.pid),
    ):
        require_free(tmp_path, At(dagster_port=free_port(), pages_port=free_port()), lines.append)
        left.wait(
            PATIENCE_S
        )  # psutil has already waited for this process, so its exit code is unknown
    assert lines == [f"ended dagster, process {left.pid}"]


@pytest.fixture
def at() -> At:
    """Return free ports for the parts."""
    return At(dagster_port=free_port(), pages_port=free_port())


@pytest.fixture
def environment(settings: Settings, migrated: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a planner that samples every five seconds and finds no groups."""
    config = tmp_path / "fairlead.toml"
    config.write_text(f"""
state_dir = "{tmp_path / "state"}"
kafka.bootstrap_servers = "{settings.kafka.bootstrap_servers}"
kafka.request_timeout_s = {PATIENCE_S}
postgres.url = "{migrated}"
discovery.include = ["nobody"]
sampling.every = "PT5S"
""")
    return {**os.environ, "FAIRLEAD_CONFIG": str(config)}


class Ready:
    """Client of `/ready`.

    Parameters
    ----------
    at
        Address of the pages.
    """

    def __init__(self, at: At) -> None:
        self._address = f"{at.pages}/ready"

    def missing(self) -> list[str]:
        """Return the descriptions of the parts that do not run."""
        try:
            with urlopen(self._address, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own server
                found: dict[str, list[str]] = json.load(answer)
        except HTTPError as error:  # status 503
            with error:
                found = json.load(error)
        except OSError:
            return ["pages do not answer"]
        return found["missing"]

    def wait(self) -> None:
        """Wait until no part is missing."""
        eventually(lambda: not self.missing(), f"{self._address} answers 200")

    @contextmanager
    def watched(self) -> Iterator[list[str]]:
        """Poll `/ready` until the block ends; yield a list that gets each missing part once."""
        ended, seen = threading.Event(), list[str]()

        def watch() -> None:
            while not ended.wait(0.1):  # clock: the time between requests
                seen.extend(missing for missing in self.missing() if missing not in seen)

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield seen
        finally:
            ended.set()
            thread.join()


def sampled_since(state_dir: Path, moment: float) -> bool:
    """Return whether a sample began after `moment`, in seconds since 1970."""
    taken = SampleArchive(str(state_dir / "warehouse")).taken()
    return taken is not None and taken.began.timestamp() > moment


@pytest.mark.kafka
@pytest.mark.postgres
def test_sampling_continues_after_a_kill_of_the_code_server(
    at: At, environment: Mapping[str, str], tmp_path: Path
) -> None:
    """A killed code server is restarted; until then, `/ready` reports that it is missing."""
    state_dir, ready = tmp_path / "state", Ready(at)
    lines: list[str] = []
    with TemporaryDirectory() as folder, (tmp_path / "log").open("w") as log:
        socket = Path(folder) / "code.sock"
        workspace = furnish(tmp_path / "home", socket)
        surroundings = {**environment, HOME_VARIABLE: str(workspace.parent)}
        parts: list[Part] = [code(socket), daemon(workspace), pages(at)]
        with Supervisor(
            parts, log=log, tell=lines.append, state_dir=state_dir, environment=surroundings
        ):
            ready.wait()
            (server,) = (part for part in still_running(state_dir) if part.name == "code")
            killed_at = time.time()
            os.kill(server.pid, signal.SIGKILL)
            ended = "code has ended (by signal SIGKILL): it is started again in 1 s"
            eventually(lambda: lines == [ended], "that is told")
            eventually(
                lambda: any("code" in missing for missing in ready.missing()), "/ready says so"
            )
            ready.wait()
            eventually(lambda: sampled_since(state_dir, killed_at), "sampling continues")
    assert lines == [ended]


@pytest.fixture
def running(
    at: At, environment: Mapping[str, str], tmp_path: Path
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run `fairlead up`; yield its process and a list that collects its output lines."""
    ports = ("--port", str(at.pages_port), "--dagster-port", str(at.dagster_port))
    lines: list[str] = []
    with subprocess.Popen(
        [FAIRLEAD, "up", "--plan", *ports],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        output = process.stdout
        reader = threading.Thread(target=lambda: lines.extend(output))
        reader.start()
        try:
            yield process, lines
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            reader.join()


@pytest.mark.kafka
@pytest.mark.postgres
@pytest.mark.spark
@pytest.mark.test_long(
    guarded_by="tests/fairlead/surfaces/up/test_up.py"
    "::test_sampling_continues_after_a_kill_of_the_code_server"
)
def test_parts_are_restarted_and_ended(
    running: tuple[subprocess.Popen[str], list[str]], at: At, tmp_path: Path
) -> None:
    """If SIGKILL or SIGSEGV ends a part, sampling continues; SIGTERM to `up` ends all parts."""
    (process, lines), ready, state_dir = running, Ready(at), tmp_path / "state"

    def is_logged(text: str) -> bool:
        assert process.poll() is None, "".join(lines)
        return any(text in line for line in lines)

    eventually(lambda: is_logged("Planning is on (planning_sensor)"), "it starts")
    assert is_logged(f"up        | Dagster  {at.dagster}\n")
    for address in (f"{at.dagster}/server_info", at.pages):
        with urlopen(address, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own server
            assert answer.status == 200
    eventually(lambda: is_logged("spark     | Spark runs at localhost:"), "Spark is started")
    for name in (*PARTS, "run"):
        for how in (signal.SIGKILL, signal.SIGSEGV):
            ready.wait()
            found = process_of(name, state_dir, at)
            with ready.watched() as missing:
                killed_at = time.time()
                found.send_signal(how)
                eventually(lambda: sampled_since(state_dir, killed_at), "sampling continues")  # noqa: B023
                sampled_after_s = time.time() - killed_at
                ready.wait()
            sys.stdout.write(
                f"{name} {how.name}: a sample after {sampled_after_s:.0f} s; {missing}\n"
            )
            assert name == "run" or any(line.startswith(name) for line in missing)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 5
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert [
        command(relative) for relative in family if command(relative)
    ] == []  # `family` was read before, because ended processes have no children
    assert still_running(state_dir) == []
    beyond = [left for left in psutil.process_iter() if str(tmp_path) in " ".join(command(left))]
    assert beyond == []


def process_of(name: str, state_dir: Path, at: At) -> psutil.Process:
    """Return the process of a part; for `run`, launch a Dagster run and return its process."""

    def find() -> psutil.Process | None:
        recorded_here = (part for part in still_running(state_dir) if part.name == name)
        return next((part.process() for part in recorded_here), None)

    return process_of_a_run(state_dir, at) if name == "run" else wait_for(find)


def process_of_a_run(state_dir: Path, at: At) -> psutil.Process:
    """Launch a run of Dagster's job `sample`; return its process, a child of the code server."""

    def workers() -> set[psutil.Process]:
        parts = (part for part in still_running(state_dir) if part.name == "code")
        parents = [parent for part in parts if (parent := part.process()) is not None]
        children = {child for parent in parents for child in parent.children()}
        return {child for child in children if "resource_tracker" not in " ".join(command(child))}

    before = workers()
    job = {"repositoryName": "__repository__", "repositoryLocationName": LOCATION}
    parameters = {
        "selector": {**job, "jobName": "sample"},
        "runConfigData": "{}",
        "mode": "default",
    }
    assert ask(at, LAUNCH, parameters=parameters)["launchRun"]["run"]["runId"]
    return wait_for(lambda: next(iter(workers() - before), None))


def wait_for(find: Callable[[], psutil.Process | None]) -> psutil.Process:
    """Wait until `find` returns a process; return it."""
    seen: list[psutil.Process] = []

    def search() -> bool:
        process = find()
        seen.extend([] if process is None else [process])
        return bool(seen)

    eventually(search, "it runs")
    return seen[0]


def ask(at: At, query: str, **variables: Any) -> Any:
    """Return the answer of Dagster's GraphQL to a query."""
    question = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{at.dagster}/graphql", question, headers)  # noqa: S310 - our own server
    with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own server
        return json.load(answer)["data"]


def command(process: psutil.Process) -> list[str]:
    """Return a process's command line, or an empty list if the process has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
