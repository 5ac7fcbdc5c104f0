"""A group of consumers, one process each, and random events for them.

Belongs here: the group, the events, and waiting until the group is settled. Belongs elsewhere: the
frequency of events, and the final checks (`storming`).
"""

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewPartitions

from fairlead.sandbox.kafka import KafkaBroker
from tests.cluster import QUIET
from tests.fairlead.followers.helpers import make_plan
from tests.records import unsigned
from tests.waiting import PATIENCE_S, eventually

WORKER = Path(__file__).with_name("storm_worker.py")
#: Session timeout in seconds, long enough for slow members.
SESSION_S = 10.0
#: Log messages about a missed session or a failed last commit. The first two lines are messages of
#: Python clients; the last line has those of librdkafka, Java and the tests' consumers.
_HARM = re.compile(
    r"member_id was not recognized|Heartbeat session expired|likely to cause duplicate"
    r"|OffsetCommit failed before join|Failed to commit on finallization"
    r"|SESSTMOUT|COMMITFAIL|partitions lost|partitions as lost|Not committed"
)
NAMES = [f"c{number:02}" for number in range(12)]
MOST_PARTITIONS = 20
#: Expected exit codes after SIGTERM, of Python and of a JVM.
IN_ORDER = (0, 128 + signal.SIGTERM)
#: Seconds for which a broker is frozen: longer than its session timeout at the controller.
FROZEN_S = 8.0
#: Seconds between two samples of owners. Members record a revocation before it takes effect.
SAMPLE_S = 0.05


class Overlap(NamedTuple):
    """Members that recorded, in two samples in a row, that they owned the same partition.

    One sample proves nothing: a partition may move while the members' files are read.

    Parameters
    ----------
    event
        Number and name of the event at that time.
    partition, folders
        The partition, and the folders of its owners.
    """

    event: tuple[int, str]
    partition: int
    folders: frozenset[Path]


@dataclass(frozen=True)
class Kind:
    """One kind of consumer.

    Parameters
    ----------
    client, configs
        The client library, and settings that only this kind has.
    command
        Command that starts a consumer; the consumer's task is appended as JSON.
    static
        Whether consumers are static members, with their names as instance ids.
    """

    client: str
    configs: Mapping[str, Any] = field(default_factory=dict)
    command: Sequence[str] = (sys.executable, str(WORKER))
    static: bool = False


@dataclass
class Worker:
    """One consumer process."""

    name: str
    folder: Path
    process: "subprocess.Popen[bytes]"

    @property
    def state(self) -> dict[str, Any]:
        """The state that the process wrote last."""
        try:
            known: dict[str, Any] = json.loads((self.folder / "state").read_text())
        except FileNotFoundError:
            return {}
        return known


@dataclass
class Storm:
    """The group, its expected state, and the history of its events.

    Parameters
    ----------
    kinds
        Kinds of consumers; a kind is drawn for each consumer that joins.
    bootstrap_servers, group, plan_topic, topic, folder
        The cluster, the names of group and topics, and the folder for consumers' files.
    brokers
        Brokers, of which one at a time may fail; if empty, no broker fails.
    rng
        Source of all random decisions.
    fewest, at_first, most
        Minimum, initial and maximum number of consumers.
    named
        Member names in plans.
    """

    kinds: Sequence[Kind]
    bootstrap_servers: str
    group: str
    plan_topic: str
    topic: str
    folder: Path
    rng: random.Random
    brokers: Mapping[int, KafkaBroker] = field(default_factory=dict)
    fewest: int = 4
    at_first: int = 8
    most: int = len(NAMES)
    named: Sequence[str] = tuple(NAMES)
    partitions: int = 12
    history: list[str] = field(default_factory=list)
    settled_s: list[float] = field(default_factory=list)
    workers: dict[str, Worker] = field(default_factory=dict)
    gone: list[Worker] = field(default_factory=list)
    #: Folders of members that died or were fenced. Their messages may be read twice.
    harmed: set[Path] = field(default_factory=set)
    #: Number of broker outages, in which commits of any member may be lost.
    outages: int = 0
    version: int = 0
    followed: int | None = None
    spoilt: bool = False
    #: The current event; and, for each event, the longest time for which a partition had no owner.
    event: tuple[int, str] = (0, "beginning")
    unowned_s: dict[tuple[int, str], float] = field(default_factory=dict)
    overlaps: list[Overlap] = field(default_factory=list)

    def __post_init__(self) -> None:
        connection = {"bootstrap_servers": self.bootstrap_servers}
        self._producer = KafkaProducer(**connection, metadata_max_age_ms=1000, acks="all")
        self._admin = KafkaAdminClient(**connection)
        self.sent = 0
        self._calm = threading.Event()
        self._writer = threading.Thread(target=self._write)
        self._writer.start()
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()

    def end(self) -> None:
        """End every process, and close all connections."""
        self.stop_writing()
        self._ended.set()
        self._watcher.join()
        for worker in self.workers.values():
            worker.process.send_signal(signal.SIGCONT)
            worker.process.kill()
            worker.process.wait()
        self._producer.close()
        self._admin.close()

    def stop_writing(self) -> None:
        """Stop writing messages, and flush the producer."""
        self._calm.set()
        self._writer.join()
        self._producer.flush()

    def _write(self) -> None:
        rng = random.Random(0)
        while not self._calm.wait(0.02):  # clock: sets the rate of records
            for _ in range(5):
                partition = rng.choice(sorted(self._producer.partitions_for(self.topic)))
                self._producer.send(self.topic, partition=partition, value=b"%d" % self.sent)
                self.sent += 1

    def _watch(self) -> None:
        """Record how long partitions have no owner, and which partitions have several owners."""
        since: dict[int, tuple[float, tuple[int, str], frozenset[Path]]] = {}
        while not self._ended.wait(SAMPLE_S):  # clock: the time between samples
            now, owners = time.monotonic(), self._owners()  # clock: only logged
            for partition in range(self.partitions):
                by = frozenset(owners[partition])
                began, event, before = since.setdefault(partition, (now, self.event, by))
                if len(by) > 1 and by == before and began < now:
                    self.overlaps.append(Overlap(event, partition, by))
                if by == before:
                    continue
                since[partition] = (now, self.event, by)
                if not before:
                    self.unowned_s[event] = max(self.unowned_s.get(event, 0.0), now - began)

    def _owners(self) -> dict[int, list[Path]]:
        """Return, for each partition, the folders of the members that report owning it."""
        owners: defaultdict[int, list[Path]] = defaultdict(list)
        for folder, state in self._states():
            for partition in state.get("owned", ()):
                owners[partition].append(folder)
        return owners

    def _states(self) -> list[tuple[Path, dict[str, Any]]]:
        """Return each member's last state, with the folder of its process."""
        return [(worker.folder, worker.state) for worker in list(self.workers.values())]

    def settle(self) -> None:
        """Wait until each partition has one owner and all members follow the same plan version."""
        started = time.monotonic()  # clock: only logged
        eventually(lambda: self._dead() or self._settled(), self._so_far)
        assert not self._dead(), f"died: {self._dead()}\n{self._so_far()}"
        self.settled_s.append(time.monotonic() - started)  # clock: only logged

    def _dead(self) -> list[str]:
        return [w.name for w in self.workers.values() if w.process.poll() is not None]

    def _so_far(self) -> str:
        states = {name: worker.state for name, worker in self.workers.items()}
        wanted = f"version {self.followed}, {self.partitions} partitions, spoilt {self.spoilt}"
        lines = [f"wanted: {wanted}", f"states: {states}", f"logs: {self.folder}", *self.history]
        return "\n".join(lines)

    def _settled(self) -> bool:
        states = [state for _, state in self._states()]
        if not all(state.get("joined") for state in states):
            return False
        owned = sorted(partition for state in states for partition in state["owned"])
        return (
            owned == list(range(self.partitions))
            and {state["version"] for state in states} == {self.followed}
            and {state["problem"] for state in states} == {self.spoilt}
        )

    # Events. Each returns a line for the history, or None if the event is impossible now.

    def join(self) -> str | None:
        """Start a consumer under a free name."""
        free = [name for name in NAMES[: self.most] if name not in self.workers]
        if not free:
            return None
        name = self.rng.choice(free)
        folder = self.folder / f"{name}-{len(self.workers) + len(self.gone)}"
        folder.mkdir()
        kind = self.rng.choice(self.kinds)
        task = {
            "client": kind.client,
            "topic": self.topic,
            "folder": str(folder),
            "configs": {
                "bootstrap_servers": self.bootstrap_servers,
                "group_id": self.group,
                "client_id": name,
                "auto_offset_reset": "earliest",
                "metadata_max_age_ms": 2000,
                **self.following,
                **({"group_instance_id": name} if kind.static else {}),
                **kind.configs,
            },
        }
        with (folder / "errors").open("wb") as errors:
            process = subprocess.Popen([*kind.command, json.dumps(task)], stderr=errors)
        self.workers[name] = Worker(name, folder, process)
        return f"join {name} ({kind.client})"

    @property
    def following(self) -> dict[str, Any]:
        """Settings of consumers that follow plans."""
        return {
            "plan_topic": self.plan_topic,
            "rejoin_jitter_s": 0.2,
            "session_timeout_ms": int(SESSION_S * 1000),
            "heartbeat_interval_ms": 300,
        }

    def leave(self) -> str | None:
        """Stop a consumer with SIGTERM."""
        if (worker := self._some()) is None:
            return None
        worker.process.terminate()
        assert worker.process.wait(timeout=PATIENCE_S) in IN_ORDER, worker.folder
        return self._forget("leave", worker)

    def kill(self) -> str | None:
        """Kill a consumer; it stays a member until its session times out."""
        worker = self._some()
        return None if worker is None else self._kill(worker)

    def pause(self) -> str | None:
        """Freeze a consumer until its session times out and the group settles, then resume it."""
        if (worker := self._some()) is None:
            return None
        worker.process.send_signal(signal.SIGSTOP)
        del self.workers[worker.name]
        self.harmed.add(worker.folder)
        try:
            self.settle()
        finally:
            worker.process.send_signal(signal.SIGCONT)
            self.workers[worker.name] = worker
        return f"pause {worker.name}"

    def plan(self) -> str:
        """Publish a plan with random shares for all names, including names that no consumer has."""
        self.version += 1
        members: dict[str, dict[str, list[int]]] = {name: {self.topic: []} for name in self.named}
        for partition in range(self.partitions):
            members[self.rng.choice(self.named)][self.topic].append(partition)
        counts = {self.topic: self.partitions}
        plan = make_plan(members, partition_counts=counts, group=self.group, version=self.version)
        value = plan.to_bytes()
        self._put(value, unsigned(value))
        self.followed, self.spoilt = self.version, False
        return f"plan version {self.version}"

    def tombstone(self) -> str | None:
        """Withdraw the plan with a tombstone."""
        self._put(None, [])
        self.followed, self.spoilt = None, False
        return "tombstone"

    def garbage(self) -> str:
        """Send bytes that are no plan, with the group's key."""
        self._put(self.rng.randbytes(200), [])
        self.spoilt = True
        return "garbage"

    def grow(self) -> str | None:
        """Add a partition to the topic."""
        if self.partitions == MOST_PARTITIONS:
            return None
        self._admin.create_partitions({self.topic: NewPartitions(self.partitions + 1)})
        self.partitions += 1
        return f"grow to {self.partitions}"

    def broker_dies(self) -> str:
        """Kill a broker, wait until the group settles without it, and start the broker again."""
        number = self.rng.choice(sorted(self.brokers))
        self.outages += 1
        self.brokers[number].kill()
        self.settle()
        self.brokers[number].start()
        return f"broker {number} dies"

    def broker_freezes(self) -> str:
        """Freeze a broker long enough for the other brokers to take over, then resume it."""
        number = self.rng.choice(sorted(self.brokers))
        self.outages += 1
        process = self.brokers[number].process()
        assert process is not None
        process.suspend()
        time.sleep(FROZEN_S)  # clock: the duration of the freeze is the event
        process.resume()
        return f"broker {number} freezes"

    def both_die(self) -> str | None:
        """Kill a member and the coordinator's broker; restart the broker once the group settles."""
        if (worker := self._some()) is None:
            return None
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, **QUIET})
        found: Any = admin.describe_consumer_groups([self.group])[self.group]
        number = found.result(PATIENCE_S).coordinator.id
        self.outages += 1
        self.brokers[number].kill()
        killed = self._kill(worker)
        self.settle()
        self.brokers[number].start()
        return f"coordinator {number} dies, {killed}"

    def _kill(self, worker: Worker) -> str:
        worker.process.kill()
        worker.process.wait()
        self.harmed.add(worker.folder)
        return self._forget("kill", worker)

    def _some(self) -> Worker | None:
        if len(self.workers) <= self.fewest:
            return None
        return self.workers[self.rng.choice(sorted(self.workers))]

    def _forget(self, what: str, worker: Worker) -> str:
        self.gone.append(self.workers.pop(worker.name))
        return f"{what} {worker.name}"

    def _put(self, value: bytes | None, headers: list[tuple[str, bytes]]) -> None:
        self._producer.send(
            self.plan_topic, key=self.group.encode(), value=value, headers=headers
        ).get(timeout=PATIENCE_S)

    def harmed_by_logs(self) -> set[Path]:
        """Return the folders of members whose logs show a lost session or a failed commit.

        On a busy machine, this also happens to members that were not disturbed.
        """
        return {log.parent for log in self._logs() if _HARM.search(log.read_text(errors="replace"))}

    def _logs(self) -> list[Path]:
        """Return the logs of members and of their clients."""
        return [log for name in ("log", "errors") for log in self.folder.glob(f"*/{name}")]

    def readers(self) -> dict[int, Counter[Path]]:
        """Return, by message number, how often each consumer (its folder) has read the message."""
        found: dict[int, Counter[Path]] = {}
        for folder in self.folder.iterdir():
            written = (folder / "messages").read_text() if folder.is_dir() else ""
            for line in written.rpartition("\n")[0].splitlines():  # the last line may be incomplete
                if line.count(" "):
                    number = int(line.split()[1])
                    found.setdefault(number, Counter())[folder] += 1
        return found

    def possessions(self) -> Iterator[list[int]]:
        """Yield, for each assignment of a partition, the offsets that the new owner then read.

        Members that do not record offsets and assignments are left out.
        """
        for messages in self.folder.glob("*/messages"):
            read: dict[str, list[int]] = {}
            for line in messages.read_text().rpartition("\n")[0].splitlines():
                partition, *what = line.split()
                if not what:
                    yield from [read[partition]] if partition in read else []
                    read[partition] = []
                elif partition in read:
                    read[partition].append(int(what[1]))
            yield from read.values()
