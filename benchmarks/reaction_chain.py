"""From a consumer that slows down to the plan that is followed: `-m benchmarks.reaction_chain`.

Belongs here: a group on a real broker whose consumers take their time for each record and commit
within every look, Dagster's daemon with looks every 15 s and a warm Spark beside it, and when what
was seen; printing, and writing reaction_chain.json. Does not: the run alone (`reaction`).
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.consumers import KafkaPythonMember
from fairlead.sandbox import Sandbox
from fairlead.wire.document import PlanDocument

RESULTS: Final = Path(__file__).with_name("reaction_chain.json")
ROOT: Final = Path(__file__).parents[1]
TOPIC: Final = "records"
PARTITIONS, MEMBERS = 12, 3
ARRIVE_S, DO_S = 120.0, 100.0  # records a second, in all and of a consumer
SLOWED: Final = 3.0
PATIENCE_S: Final = 600.0
#: Looks before the cause: what is healthy is known then.
HEALTHY_S: Final = 120.0
POLL_S: Final = 0.1
CONFIG: Final = """
state_dir = "{folder}"
kafka.bootstrap_servers = "{servers}"
postgres.url = "{url}"
looks.every = "PT15S"
looks.share = 0.5
discovery.include = ["chain-*"]

[[policies]]
approval = {{automatic = true}}
"""
STORAGE: Final = "\nstorage:\n  postgres:\n    postgres_url:\n      env: DAGSTER_POSTGRES_URL\n"


class Pace:
    """How long a consumer takes for its records."""

    def __init__(self) -> None:
        self.per_s = DO_S

    def __call__(self, records: int) -> None:
        """Take as long as they take."""
        time.sleep(records / self.per_s)


def main() -> None:
    """Measure some rounds, print, and write the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--answer", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o755)
        sandbox = Sandbox(folder / "services")
        servers = stack.enter_context(sandbox).bootstrap_servers
        with psycopg.connect(sandbox.postgres.url("postgres"), autocommit=True) as connection:
            for name in ("chain", "chain_dagster"):
                connection.execute(f"CREATE DATABASE {name}".encode())
        url = sandbox.postgres.url("chain")
        (folder / "fairlead.toml").write_text(
            CONFIG.format(folder=folder, servers=servers, url=url)
        )
        (folder / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text() + STORAGE)
        around = {
            "FAIRLEAD_CONFIG": str(folder / "fairlead.toml"),
            "DAGSTER_HOME": str(folder),
            "DAGSTER_POSTGRES_URL": sandbox.postgres.url("chain_dagster", driver="psycopg2"),
            "PYSPARK_PYTHON": sys.executable,
        }
        command(around, "fairlead", "db", "upgrade")
        workspace = str(ROOT / "workspace.yaml")
        command(around, "dagster", "sensor", "start", "planning_sensor", "-w", workspace)
        make_topic(servers)
        command(around, "fairlead", "spark", "up")
        stack.callback(command, around, "fairlead", "spark", "down")
        stack.enter_context(arrivals(servers))
        for name, words in {
            "forkserver": (sys.executable, "-m", "orchestration.forkserver"),
            "daemon": (
                str(Path(sys.executable).with_name("dagster-daemon")),
                "run",
                "-w",
                workspace,
            ),
        }.items():
            stack.enter_context(running(words, around, folder / f"{name}.log"))
        rounds = [measured(servers, url, f"chain-{number}") for number in range(arguments.rounds)]
    names = rounds[0].keys() - {"diagnosis"}
    result = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "load average at the end": [round(one, 1) for one in os.getloadavg()],
        "rounds": rounds,
        "medians": {
            name: round(statistics.median(one[name] for one in rounds), 1) for name in sorted(names)
        },
    }
    arguments.answer.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


def measured(servers: str, url: str, group: str) -> dict[str, Any]:
    """Slow one of a group's consumers down; return the seconds until what was seen."""
    paces = [Pace() for _ in range(MEMBERS)]
    with ExitStack() as stack:
        members = {
            f"{group}-{number}": stack.enter_context(
                KafkaPythonMember(
                    [TOPIC],
                    follow=True,
                    work=pace,
                    bootstrap_servers=servers,
                    group_id=group,
                    client_id=f"{group}-{number}",
                    auto_offset_reset="latest",
                    auto_commit_interval_ms=1_000,
                    max_poll_records=10,
                )
            )
            for number, pace in enumerate(paces)
        }

        def found() -> str | None:
            rows = asked(url, "SELECT diagnosis FROM fairlead.diagnosis WHERE group_id = %s", group)
            return rows[0][0] if rows else None

        time.sleep(HEALTHY_S)  # looks are taken meanwhile: that is what is waited for
        until(lambda: found() == "healthy", f"{group} is healthy")
        print(f"{group} is healthy", flush=True)
        paces[1].per_s = DO_S / SLOWED
        began = time.monotonic()
        until(lambda: found() not in {None, "healthy", "unknown"}, "a diagnosis")
        diagnosed, diagnosis = time.monotonic() - began, found()
        print(f"{group}: {diagnosis} after {diagnosed:.1f} s", flush=True)

        def adopted() -> bool:
            rows = asked(
                url,
                "SELECT document FROM fairlead.plan WHERE group_id = %s AND state = 'published'",
                group,
            )
            if not rows:
                return False
            document = PlanDocument.from_bytes(bytes(rows[0][0]), group=group)
            return all(
                members[name].owned
                == {(topic, int(one)) for topic, some in share.partitions.items() for one in some}
                for name, share in document.members.items()
            )

        until(adopted, "the plan is followed")
        followed = time.monotonic() - began
        (stored, published) = asked(
            url,
            "SELECT extract(epoch FROM now() - proposed_at)::float8,"
            " extract(epoch FROM now() - published_at)::float8"
            " FROM fairlead.plan_history WHERE group_id = %s AND state = 'published'",
            group,
        )[0]
        now = time.monotonic() - began
        return {
            "diagnosis": diagnosis,
            "cause to diagnosis": round(diagnosed, 1),
            "cause to stored plan": round(now - stored, 1),
            "cause to published plan": round(now - published, 1),
            "cause to adopted plan": round(followed, 1),
        }


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(POLL_S)


def asked(url: str, statement: str, *values: object) -> list[Any]:
    """Return what the database answers."""
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode(), values).fetchall()


def make_topic(servers: str) -> None:
    """Make the topic that all groups read."""
    admin = AdminClient({"bootstrap.servers": servers})  # answers nothing once it is let go
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(60)


@contextmanager
def arrivals(servers: str) -> Iterator[None]:
    """Let records arrive evenly, until the context ends."""
    over = threading.Event()

    def run() -> None:
        producer, number = Producer({"bootstrap.servers": servers}), 0
        began = time.monotonic()
        while not over.wait(0.05):
            while number < (time.monotonic() - began) * ARRIVE_S:
                producer.produce(TOPIC, b"record", partition=number % PARTITIONS)
                number += 1
            producer.poll(0)
        producer.flush(30)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def command(around: Mapping[str, str], *words: str) -> None:
    """Run a command of this environment to its end."""
    first = str(Path(sys.executable).with_name(words[0]))
    subprocess.run([first, *words[1:]], cwd=ROOT, env={**os.environ, **around}, check=True)


@contextmanager
def running(words: Sequence[str], around: Mapping[str, str], log: Path) -> Iterator[None]:
    """Run a service of this environment, in a process group of its own."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            env={**os.environ, **around},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
        print(log.read_text()[-3000:])


if __name__ == "__main__":
    main()
