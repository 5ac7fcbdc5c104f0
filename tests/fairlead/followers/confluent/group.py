"""A group of confluent-kafka consumers, one process each, and their journals (files of events)."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster import QUIET
from tests.fairlead.followers.helpers import make_plan
from tests.records import unsigned
from tests.topics import create_topics
from tests.waiting import PATIENCE_S, eventually

# clocks: times show whether two processes owned a partition at once

WORKER = Path(__file__).with_name("worker.py")
#: Session timeout in seconds, long enough for slow members.
SESSION_S = 60.0
Partition = tuple[str, int]


@dataclass
class Interval:
    """A period in which a process owned partitions, according to its journal."""

    name: str
    partitions: set[Partition]
    begin: float
    end: float = float("inf")


@dataclass
class Worker:
    """One consumer process."""

    name: str
    journal: Path
    process: subprocess.Popen[bytes]
    ended_at: float | None = None
    offset: int = 0
    _events: list[dict[str, Any]] = field(default_factory=list)

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the events in the process's journal so far, or only those of one kind."""
        if self.journal.exists():
            with self.journal.open("rb") as file:
                file.seek(self.offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self.offset += len(line)
                    self._events.append(json.loads(line))
        return [event for event in self._events if kind in {None, event["event"]}]

    @property
    def owned(self) -> list[Partition]:
        """Return the partitions that the process owns now."""
        last = [e for e in self.events() if e["event"] in {"own", "release", "lost", "closed"}][-1:]
        return [(t, p) for event in last for t, p in event.get("partitions", ())]

    @property
    def version(self) -> int | None:
        """Return the plan version that the process follows now."""
        noted = self.events("version")
        return noted[-1]["version"] if noted else None

    def leave(self) -> None:
        """End the process with SIGTERM; fail if it ends with an error."""
        eventually(lambda: bool(self.events("ready")), f"{self.name} takes signals")
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE_S)
        assert code == 0, f"ended with {code}: {self.log}"
        self.ended_at = time.monotonic()

    @property
    def log(self) -> str:
        """Return the end of the process's log."""
        return self.journal.with_suffix(".log").read_text()[-6000:]

    def intervals(self) -> Iterator[Interval]:
        """Yield the periods in which the process owned partitions, according to its journal."""
        current: Interval | None = None
        for event in self.events():
            if event["event"] in {"own", "release", "lost", "closed"}:
                if current is not None:
                    current.end = event["at"]
                    yield current
                current = None
            if event["event"] == "own":
                share = {(t, p) for t, p in event["partitions"]}
                current = Interval(self.name, share, event["at"])
        if current is not None:
            current.end = float("inf") if self.ended_at is None else self.ended_at
            yield current


class ConfluentGroup:
    """A consumer group, its plan topic, and the coordination topic in which its members agree.

    Parameters
    ----------
    bootstrap_servers
        The cluster.
    name
        The group id, and the prefix of topic names.
    directory
        Directory for journals and logs.
    partitions
        Number of partitions of the group's only topic.
    replicas
        Number of replicas of every topic.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        name: str,
        directory: Path,
        *,
        partitions: int = 6,
        replicas: int = 1,
    ) -> None:
        self.name = name
        self.topic, self.plan_topic, self.coordination_topic = (
            f"{name}-{suffix}" for suffix in ("data", "plans", "agreement")
        )
        self.partitions = partitions
        self.secret: str | None = None
        self.workers: dict[str, Worker] = {}
        self.gone: list[Worker] = []
        self._bootstrap = bootstrap_servers
        self._directory = directory
        quiet = {"bootstrap.servers": bootstrap_servers, **QUIET}
        self.admin = AdminClient(quiet)
        self.create_topic(self.topic, partitions, replicas)
        self.create_topic(self.plan_topic, 3, replicas, {"cleanup.policy": "compact"})
        self.producer = Producer({**quiet, "partitioner": "murmur2_random"})

    def create_topic(
        self, name: str, partitions: int, replicas: int = 1, config: dict[str, str] | None = None
    ) -> None:
        """Create a topic."""
        new = NewTopic(name, partitions, replicas, config=config or {})
        create_topics(self.admin, new)

    def start(self, name: str, *, config: dict[str, Any] | None = None, **spec: Any) -> Worker:
        """Start a consumer process."""
        number = len(self.gone) + len(self.workers)
        journal = self._directory / f"{number}-{name}.jsonl"
        whole = {
            "journal": str(journal),
            "topics": [self.topic],
            "plan_topic": self.plan_topic,
            "coordination_topic": self.coordination_topic,
            "group_secret": self.secret,
            "config": {
                "bootstrap.servers": self._bootstrap,
                "group.id": self.name,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.offset.store": False,
                "heartbeat.interval.ms": 300,
                "session.timeout.ms": int(SESSION_S * 1000),
                "topic.metadata.refresh.interval.ms": 1000,
                **(config or {}),
            },
            **spec,
        }
        with journal.with_suffix(".log").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(WORKER), json.dumps(whole)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.workers[name] = Worker(name, journal, process)
        return self.workers[name]

    def leave(self, name: str) -> None:
        """Stop a consumer's process, so that the consumer leaves the group."""
        worker = self.workers.pop(name)
        self.gone.append(worker)
        worker.leave()

    def publish(self, version: int, **shares: list[int]) -> None:
        """Publish a plan for the group's topic."""
        plan = make_plan(
            {name: {self.topic: share} for name, share in shares.items()},
            partition_counts={self.topic: self.partitions},
            group=self.name,
            version=version,
        )
        value = plan.to_bytes()
        self.send(value, unsigned(value))

    def send(self, value: bytes | None, headers: list[tuple[str, bytes]] | None = None) -> None:
        """Send a record with the group's key to the plan topic."""
        self.producer.produce(self.plan_topic, value, key=self.name, headers=[*(headers or [])])
        assert self.producer.flush(PATIENCE_S) == 0

    def settles(self, *, version: int | str | None = "any", **shares: list[int]) -> None:
        """Wait until each partition has one owner, and plan version and shares are as requested.

        Parameters
        ----------
        version
            The plan version that all workers follow; "any": versions may differ.
        shares
            The partitions of each worker. If omitted, any complete assignment is accepted.
        """
        everything = sorted((self.topic, number) for number in range(self.partitions))

        def settled() -> bool:
            for worker in self.workers.values():
                assert worker.process.poll() is None, f"{worker.name} ended:\n{worker.log}"
            owned = {name: worker.owned for name, worker in self.workers.items()}
            versions = {worker.version for worker in self.workers.values()}
            if sorted(p for share in owned.values() for p in share) != everything:
                return False
            if len(versions) > 1 and version != "any":
                return False
            if version not in {"any", *versions}:
                return False
            numbers = {name: [p for _, p in share] for name, share in owned.items()}
            return not shares or numbers == shares

        self.eventually(settled, f"version {version}, {shares or 'complete'}")

    def eventually(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds; if it never does, fail with every worker's history."""
        eventually(condition, lambda: f"{what}\n{self.history()}")

    def overlaps(self) -> list[str]:
        """Describe each case in which two processes owned the same partition at the same time."""
        intervals = sorted(
            (i for w in (*self.workers.values(), *self.gone) for i in w.intervals()),
            key=lambda interval: interval.begin,
        )
        found = []
        for number, held in enumerate(intervals):
            for other in intervals[number + 1 :]:
                both = held.partitions & other.partitions
                if both and held.name != other.name and other.begin < held.end:
                    found.append(f"{held} and {other}: {both}")
        return found

    def history(self) -> str:
        """Return each process's last events and log, for the message of a failed test."""
        lines = []
        for worker in (*self.gone, *self.workers.values()):
            events = [e for e in worker.events() if e["event"] != "message"][-12:]
            lines += [f"--- {worker.name}", *map(str, events), worker.log]
        return "\n".join(lines)

    def close(self) -> None:
        """Kill all processes that still run."""
        for worker in (*self.workers.values(), *self.gone):
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait(timeout=PATIENCE_S)


@contextmanager
def running(group: ConfluentGroup) -> Iterator[ConfluentGroup]:
    """Check at the end that no partition ever had two owners; kill the processes in any case."""
    try:
        yield group
        assert group.overlaps() == [], group.history()
    finally:
        group.close()
