"""Report the services, JVMs and time of a test run; fail a run that starts too many services.

Belongs here: the limits, the tests that may start services of their own, with reasons, and the
report. Belongs elsewhere: recording a start (`sitecustomize`).
"""

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

from tests.lengths import LONG
from tests.started.sitecustomize import STARTS_FILE, STARTS_FOR, note

#: Name of a property of pytest's reports: CPU seconds of a phase (setup, call or teardown).
CPU: Final = "cpu_s"
CPU_BEFORE: Final = pytest.StashKey[float]()
#: Seconds. The report leaves out folders whose tests took less.
LEAST_S: Final = 1.0
SHARED: Final = "the services that all tests share"
#: Maximum numbers of starts. Starts of a broker or Postgres server in the same folder count once.
#: "shared JVM": the JVMs of fixtures that all tests share, such as the compiler and Spark.
LIMITS: Final = {"broker": 8, "postgres": 4, "JVM": 20, "shared JVM": 6, "dagster dev": 1}
#: Test files that start services of their own -> why the shared services do not suffice.
OWN_SERVICES: Final = {
    "tests/assignors/test_against_kafka.py": "Kafka's assignors answer from one JVM",
    "tests/docs/test_pages.py": "the pages show Kafka's own commands",
    "tests/fairlead/kafka/test_refusals.py": "a broker that lets in by TLS and password alone",
    "tests/fairlead/kafka/test_rights.py": "the same broker",
    "tests/fairlead/kafka/test_record_sample.py": "the same broker",
    "tests/fairlead/kafka/test_coordinator_moves.py": "coordinators move between three brokers",
    "tests/fairlead/kafka/test_fetch_sources.py": "three brokers in three racks",
    "tests/fairlead/sandbox/test_jars.py": "Spark's own Ivy resolves jars",
    "tests/fairlead/sandbox/test_kafka.py": "starts and kills a broker",
    "tests/fairlead/sandbox/test_postgres.py": "starts and kills a Postgres",
    "tests/fairlead/sandbox/test_sandbox.py": "starts and ends both",
    "tests/fairlead/sandbox/test_spark.py": "the warm Spark is started and killed",
    "tests/fairlead/spark/test_cluster.py": "Spark elsewhere",
    "tests/fairlead/spark/test_lag_on_broker.py": "Kafka's own command tells the lag",
    "tests/fairlead/spark/test_launch.py": "looks at the command line of a Spark",
    "tests/fairlead/surfaces/cli/test_keys.py": "a Spark with its Kafka source",
    "tests/fairlead/surfaces/cli/test_sandbox.py": "commands start and end services",
    "tests/fairlead/surfaces/demo/test_demo.py": "the demo as a new member runs it",
    "tests/fairlead/surfaces/up/test_up.py": "all of the planner, started and ended",
    "tests/fairlead/surfaces/web/test_frozen_database.py": "the database is frozen",
    "tests/fairlead/workflows/test_crashes.py": "the broker and the database crash",
    "tests/jvm/test_broker_reading.py": "the assignor in a broker, with rights of its own",
    "tests/jvm/test_cache.py": "the jar's classes answer from one JVM",
    "tests/jvm/test_consumers.py": "Java consumers",
    "tests/jvm/test_jar.py": "compiles the example",
    "tests/migrations/test_migrations.py": "a Postgres whose roles are not there yet",
    "tests/jvm/test_group_assignor.py": "the same broker",
    "tests/ui/test_person.py": "the run's only Dagster UI",
    "tests/orchestration/test_installed.py": "plans by the installed wheel",
}


@dataclass(frozen=True)
class Start:
    """A service or a JVM that a test run started.

    Parameters
    ----------
    kind
        "broker", "postgres", "JVM" or "dagster dev".
    folder
        Working folder. A broker that restarts has the same folder.
    starter
        The test file that started the process, or `SHARED`.
    command
        The end of the command line.
    """

    kind: str
    folder: str
    starter: str
    command: str

    @property
    def limited_as(self) -> str:
        """Return the start's key in `LIMITS`."""
        return f"shared {self.kind}" if (self.kind, self.starter) == ("JVM", SHARED) else self.kind


@contextmanager
def shared() -> Iterator[None]:
    """Record processes that start within the block as services that all tests share."""
    os.environ[STARTS_FOR] = SHARED
    try:
        yield
    finally:
        del os.environ[STARTS_FOR]


def note_starts(path: Path) -> None:
    """Let this process and its Python child processes record the services that they start."""
    sys.addaudithook(note)
    os.environ[STARTS_FILE] = str(path)
    folder = str(Path(__file__).parent)
    others = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{others}" if others else folder


def starts(path: Path) -> list[Start]:
    """Return the started services, in order."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Start(*json.loads(line)) for line in lines]


def counted(found: list[Start]) -> Counter[str]:
    """Return the number of starts of each kind; restarts of a broker or Postgres do not count."""
    distinct = {
        (start.limited_as, start.folder if start.kind in {"broker", "postgres"} else number)
        for number, start in enumerate(found)
    }
    return Counter(kind for kind, _ in distinct)


def too_much(found: list[Start]) -> list[str]:
    """Return a sentence for each exceeded limit. `make test-long` has no limits."""
    if LONG:
        return []
    count = counted(found)
    above = [
        f"{count[kind]} starts of {kind}: at most {limit}"
        for kind, limit in LIMITS.items()
        if count[kind] > limit
    ]
    unlisted = sorted(
        {(start.starter, start.kind) for start in found}
        - {(starter, kind) for starter in (SHARED, *OWN_SERVICES) for kind in LIMITS}
    )
    listed = "tests/started/limits.py"
    return [
        *above,
        *(f"{starter} started {kind}: say why in {listed}" for starter, kind in unlisted),
    ]


class Report:
    """A pytest plugin that prints time and starts, and fails a run that exceeds the limits.

    Parameters
    ----------
    path
        File with the recorded starts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of a test's phase to the total of its folder."""
        folder = "/".join(PurePosixPath(report.nodeid.partition("::")[0]).parts[:3])
        seconds = self._seconds[folder.removesuffix(".py")]
        seconds[0] += report.duration
        seconds[1] += sum(float(str(s)) for name, s in report.user_properties if name == CPU)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that exceeds the limits, even if all tests passed."""
        if too_much(starts(self._path)) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print seconds by folder, longest first, and the started services."""
        write = terminalreporter.write_line
        terminalreporter.section("time and services")
        for folder, (wall, cpu) in sorted(self._seconds.items(), key=lambda item: -item[1][0]):
            if wall >= LEAST_S:
                write(f"{wall:8.1f} s {cpu:8.1f} CPU s  {folder}")
        found = starts(self._path)
        for kind, count in sorted(counted(found).items()):
            starters = Counter(start.starter for start in found if start.limited_as == kind)
            write(
                f"{kind}: {count}, at most {LIMITS[kind]}; starts: {dict(starters.most_common())}"
            )
        for sentence in too_much(found):
            write(f"ERROR {sentence}", red=True)


def cpu_s() -> float:
    """Return the CPU seconds of this process and of the child processes that it has waited for."""
    return sum(os.times()[:4])
