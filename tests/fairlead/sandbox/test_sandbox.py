"""The whole sandbox: data survive a restart, and no process is left after the end."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.sandbox import Sandbox
from tests.cluster import QUIET
from tests.interrupts import accepting_ctrl_c
from tests.lengths import form
from tests.topics import create_topics
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

IMPORTS = "import sys\nfrom pathlib import Path\nfrom fairlead.sandbox import Sandbox\n"
HOLD = IMPORTS + (
    "with Sandbox(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
)
START = IMPORTS + "print(Sandbox(Path(sys.argv[1])).start())\n"


def interrupted_after(service: str) -> str:
    """Return Python code that sends itself Ctrl-C once it has started a service."""
    return IMPORTS + (
        "import os, signal\n"
        "from fairlead.sandbox import processes\n"
        "spawn = processes.spawn\n"
        "def interrupted(command, **given):\n"
        "    process = spawn(command, **given)\n"
        f"    if any(part.endswith({service!r}) for part in command):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return process\n"
        "processes.spawn = interrupted\n"
    )


@pytest.fixture
def own(own_services: Path) -> Iterator[Sandbox]:
    """Return a stopped sandbox; at the end, none of its processes may be left."""
    sandbox = Sandbox(own_services)
    assert _processes(sandbox) == []
    yield sandbox
    sandbox.stop()
    assert _processes(sandbox) == []


@pytest.fixture
def run(own: Sandbox) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """Return a function that runs Python code, with the sandbox's directory as argument."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str) -> "subprocess.Popen[str]":
        with accepting_ctrl_c():
            process = subprocess.Popen(
                [sys.executable, "-c", code, str(own.state_dir)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _processes(sandbox: Sandbox) -> list[list[str]]:
    """Return the command lines of the services that run on a sandbox's directory."""
    lines: list[list[str]] = [
        process.info["cmdline"] or []
        for process in psutil.process_iter(["cmdline"])
        if process.pid != psutil.Process().pid
    ]
    return [line for line in lines if any(str(sandbox.state_dir) in part for part in line)]


def test_stop_and_start_keep_data_and_addresses(own: Sandbox, unique_name: str) -> None:
    """A restart keeps topics, rows and addresses; no process runs in between."""
    kept = unique_name
    with own as before:
        admin = AdminClient({"bootstrap.servers": before.bootstrap_servers, **QUIET})
        create_topics(admin, NewTopic(kept, 3))
        with psycopg.connect(before.postgres_url) as connection:
            connection.execute(f'CREATE TABLE "{kept}" AS SELECT 7 AS number'.encode())
    assert _processes(own) == []
    assert own.running() is None
    with own as after:
        admin = AdminClient({"bootstrap.servers": after.bootstrap_servers, **QUIET})
        assert len(admin.list_topics(kept, timeout=PATIENCE_S).topics[kept].partitions) == 3
        with psycopg.connect(after.postgres_url) as connection:
            assert connection.execute(f'SELECT number FROM "{kept}"'.encode()).fetchall() == [(7,)]
    assert after == before


def test_processes_that_start_at_once_share_services(
    own: Sandbox, run: Callable[[str], "subprocess.Popen[str]"]
) -> None:
    """One of two processes starts the services, and both use them until the last one ends."""
    outputs = [process.communicate(timeout=PATIENCE_S) for process in (run(START), run(START))]
    assert outputs == [(f"{own.running()}\n", "")] * 2
    assert sum("kafka.Kafka" in line for line in _processes(own)) == 1
    assert sum(line[0].endswith("/postgres") for line in _processes(own)) == 1
    before = own.running()
    with Sandbox(own.state_dir) as services:
        assert services == before
    assert own.running() == before
    own.kafka.kill()
    own.postgres.kill()
    assert own.running() is None


@pytest.mark.parametrize("service", form(short=["kafka.Kafka"], long=["kafka.Kafka", "postgres"]))
def test_ctrl_c_during_start_leaves_nothing(
    own: Sandbox, run: Callable[[str], "subprocess.Popen[str]"], service: str
) -> None:
    """Ctrl-C while a service starts ends all processes started so far."""
    output, errors = run(interrupted_after(service) + HOLD).communicate(timeout=PATIENCE_S)
    assert output == ""
    assert errors.endswith("KeyboardInterrupt\n")
    assert _processes(own) == []
    assert own.running() is None
