"""The demo's cluster: real topics with real records, and groups of real consumer processes.

Belongs here: topics and consumers of a `scenario`. Belongs elsewhere: starting the broker
(`fairlead.sandbox`), and measuring the consumers (`run`).
"""

import json
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.errors import SandboxError
from fairlead.surfaces.demo.scenario import DemoGroup

RECORD = b"fairlead demo record".ljust(100)
TIMEOUT_S = 600.0


def create_backlog(bootstrap_servers: str, group: DemoGroup) -> None:
    """Create a group's topics and fill every partition with its backlog."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 2})
    created = admin.create_topics(
        [NewTopic(topic, len(counts)) for topic, counts in group.backlog.items()],
        operation_timeout=TIMEOUT_S,
    )
    for future in created.values():
        future.result(TIMEOUT_S)
    produce(new_producer(bootstrap_servers), group.backlog)


def new_producer(bootstrap_servers: str) -> Producer:
    """Return a producer of demo records."""
    return Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 20, "log_level": 2})


def produce(producer: Producer, records: dict[str, list[int]]) -> None:
    """Append the given number of records to each partition of each topic.

    Raises
    ------
    SandboxError
        The broker did not acknowledge all records in time.
    """
    for topic, counts in records.items():
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.produce(topic, RECORD, partition=partition)
    if remaining := producer.flush(TIMEOUT_S):
        raise SandboxError(f"Kafka did not acknowledge {remaining} demo records in {TIMEOUT_S} s")


@dataclass
class Consumers:
    """A consumer group of worker processes; leaving the context ends them.

    Parameters
    ----------
    scenario
        Defines the topics, the number of consumers, and how many records each can process.
    group
        The group id: the scenario's own, or another one for the same topics.
    bootstrap_servers
        Kafka's addresses.
    plan_topic
        Topic of the plans to follow; None: Kafka's default assignor, `range`.
    log
        File for the workers' logs.
    """

    scenario: DemoGroup
    group: str
    bootstrap_servers: str
    plan_topic: str | None
    log: Path
    owned: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    processed: int = 0
    last_processed_at: float = 0.0
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)
    #: Pairs of a member and its report, which `fairlead.surfaces.demo.worker` writes.
    _reports: SimpleQueue[tuple[str, dict[str, Any]]] = field(default_factory=SimpleQueue)

    def __enter__(self) -> Self:
        """Start the workers."""
        try:
            for member in self.scenario.members:
                self._start(member)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        """End the workers, which makes them leave the group."""
        self._stop()

    def update(self) -> None:
        """Read the workers' new reports.

        Raises
        ------
        SandboxError
            A worker has ended.
        """
        while not self._reports.empty():
            member, report = self._reports.get()
            match report["event"]:
                case "assigned":
                    self.owned[member] = report["partitions"]
                case "processed":
                    self.processed += report["records"]
                    self.last_processed_at = max(self.last_processed_at, report["ended_at"])
        for member, process in zip(self.scenario.members, self._processes, strict=False):
            if (code := process.poll()) is not None:
                raise SandboxError(
                    f"Consumer {member} of group {self.group} ended with exit code {code}; its log "
                    f"is {self.log}"
                )

    @property
    def settled(self) -> bool:
        """Whether all consumers have joined and every partition has exactly one owner."""
        if len(self.owned) < self.scenario.consumers:
            return False
        owned = sorted(
            (topic, partition)
            for partitions in self.owned.values()
            for topic, numbers in partitions.items()
            for partition in numbers
        )
        return owned == sorted(
            (topic, partition)
            for topic, counts in self.scenario.backlog.items()
            for partition in range(len(counts))
        )

    def _start(self, member: str) -> None:
        command = [
            *(sys.executable, "-m", "fairlead.surfaces.demo.worker"),
            *("--bootstrap-servers", self.bootstrap_servers),
            *("--group", self.group),
            *("--name", member),
            *("--topics", ",".join(self.scenario.backlog)),
            *("--rate", str(self.scenario.speeds[member])),
            *("--expensive", json.dumps(dict(self.scenario.expensive))),
            *(("--plan-topic", self.plan_topic) if self.plan_topic else ()),
        ]
        with self.log.open("a") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._processes.append(process)
        threading.Thread(target=self._listen, args=(member, process), daemon=True).start()

    def _listen(self, member: str, process: subprocess.Popen[str]) -> None:
        if process.stdout is None:
            return
        with process.stdout as lines:
            for line in lines:
                self._reports.put((member, json.loads(line)))

    def _stop(self) -> None:
        for process in self._processes:
            with suppress(BrokenPipeError):
                if process.stdin:
                    process.stdin.close()  # ends the worker
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
