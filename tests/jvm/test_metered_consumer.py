"""Java consumers report their work with all their commits."""

import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from confluent_kafka import Producer

from fairlead.sandbox import Services
from fairlead.wire.work_report import TIMES_UNKNOWN, WorkReports, member_hash, read_reports
from tests.conftest import KafkaTopic
from tests.jvm.asking import Program
from tests.jvm.spring_listener import LISTENER, listen
from tests.lengths import form
from tests.waiting import PATIENCE_S, eventually

PARTITIONS: Final = 4
PROTOCOLS: Final = ("classic", "consumer")
#: Milliseconds that the application takes for a record, by partition.
WORK_MS: Final = (8, 1, 1, 2)


def draw(rng: random.Random) -> list[list[Any]]:
    """Return random polls, iterations over records, and commits.

    Some iterations end early. Some committed offsets are ahead of the work or behind it.
    """
    events: list[list[Any]] = []
    read = dict.fromkeys(range(3), 0)
    for _ in range(rng.randint(1, 60)):
        counts = {key: rng.randint(1, 6) for key in rng.sample(range(3), rng.randint(0, 3))}
        longest = rng.choice([4, 400])
        waited = rng.randint(1, longest)
        events.append(["poll", waited, rng.randint(0, waited), counts])
        for key, count in counts.items():
            taken = rng.choice([0, 1, count, count, count])
            events.append(["advance", rng.randint(1, longest)])
            for _ in range(taken):
                events += [["next", key], ["advance", rng.randint(1, longest)]]
                if rng.random() < 0.05:
                    events.append(["report", key, max(0, read[key] + rng.randint(-3, 3)), 0])
            if taken == count:
                events += [["end", key], ["advance", rng.randint(1, longest)]]
        for key, count in counts.items():
            read[key] += count
            if rng.random() < 0.5:
                ahead = rng.choice([0, 0, 0, -2, 5])
                events.append(["report", key, max(0, read[key] + ahead), rng.randint(0, 2)])
    return events


def test_reported_records_grow_no_more_than_committed_offsets(checks: Program) -> None:
    """Between commits, the record count grows at most as much as the committed offset."""
    rng = random.Random(1)
    compared = 0
    for _ in range(form(short=200, long=5000)):
        events = draw(rng)
        texts = checks.ask("meter", events=events, most=10_000, member="orders-1")
        found = read_reports([text.encode() for text in texts])
        assert len(found.place) == len(texts)
        commits = [event for event in events if event[0] == "report"]
        before: dict[int, tuple[int, Any]] = {}
        for (_, partition, offset, _), numbers in zip(commits, found.numbers, strict=True):
            if partition in before:
                last, counters = before[partition]
                assert (numbers[4:7] >= counters[4:7]).all()
                if offset >= last:
                    assert numbers[4] - counters[4] <= offset - last
                    compared += 1
            before[partition] = offset, numbers
    assert compared > 1000


@pytest.mark.parametrize("passes_on", [True, False])
def test_records_passed_on_have_no_times(checks: Program, *, passes_on: bool) -> None:
    """If the application passes records on to other threads, processing times are unknown."""
    events: list[list[Any]] = []
    for number in range(400):
        events += [["poll", 90, 0, {"0": 1}], ["next", 0]]
        events += [["advance", 8 if number % 20 == 0 else int(not passes_on)], ["end", 0]]
    texts = checks.ask(
        "meter", events=[*events, ["report", 0, 400, 2]], most=10_000, member="orders-1"
    )
    (paused,) = read_reports([texts[-1].encode()]).numbers[:, 7]
    assert paused == (TIMES_UNKNOWN if passes_on else 2)


@dataclass(frozen=True)
class Applications:
    """Consumers of one group in the Java process of the tests, and their commits."""

    checks: Program
    topic: str
    configs: dict[str, Any]
    producer: Producer
    names: dict[str, str] = field(default_factory=dict)

    def start(self, name: str, **configs: Any) -> dict[str, Any]:
        """Make a consumer; underscores in names of settings stand for dots."""
        self.names[name] = f"{name}-{uuid.uuid4()}"
        given = {key.replace("_", "."): value for key, value in configs.items()}
        if given["group.protocol"] == "classic":
            given["heartbeat.interval.ms"] = "300"  # in the consumer protocol, the broker sets it
        return self.act(name, "open", configs=self.configs | given)

    def act(self, name: str, act: str, **more: Any) -> dict[str, Any]:
        """Let a consumer's application run an action, and return its state."""
        request = {"act": act, "name": self.names[name], "topic": self.topic, **more}
        state: dict[str, Any] = self.checks.ask("act", **request)
        return state

    def send(self, *values_ms: int, records: int = 20) -> None:
        """Send records to the first partitions; `values_ms`: each partition's work per record."""
        for number, work_ms in enumerate(values_ms):
            for _ in range(records):
                self.producer.produce(self.topic, str(work_ms), partition=number)
        assert self.producer.flush(PATIENCE_S) == 0

    def read(self, *names: str, until: Callable[..., bool]) -> list[dict[str, Any]]:
        """Let consumers poll in turn until their states are as expected; return the states."""
        states: list[dict[str, Any]] = []

        def polled() -> bool:
            states[:] = [self.act(name, "poll") for name in names]
            return until(*states)

        eventually(polled, lambda: f"not so: {states}")
        return states

    def committed(self) -> dict[int, tuple[int, str]]:
        """Return the committed offset and metadata of each partition."""
        found = self.checks.ask("committed", topic=self.topic, configs=self.configs)
        return {int(number): (offset, metadata) for number, (offset, metadata) in found.items()}


@pytest.fixture
def applications(
    checks: Program, services: Services, kafka_topic: KafkaTopic, unique_name: str
) -> Iterator[Applications]:
    """Return a group without consumers; its consumers are closed at the end."""
    configs = {
        "bootstrap.servers": services.bootstrap_servers,
        "group.id": unique_name,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
    }
    producer = Producer({"bootstrap.servers": services.bootstrap_servers})
    started = Applications(checks, kafka_topic(partitions=PARTITIONS), configs, producer)
    yield started
    for name in started.names:
        started.act(name, "close")


def reports(committed: dict[int, tuple[int, str]]) -> WorkReports:
    """Return the report of each partition; fail if a partition has none."""
    found = read_reports([committed[number][1].encode() for number in sorted(committed)])
    assert len(found.place) == len(committed), committed
    return found


@pytest.mark.kafka
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reported_work_equals_the_applications_measurement(
    applications: Applications, protocol: str
) -> None:
    """Each partition's reported time is between the bounds that the application measured."""
    applications.send(*WORK_MS)
    applications.start("a", group_protocol=protocol)
    applications.act("a", "subscribe")
    applications.act("a", "read", number=20 * PARTITIONS)
    state = applications.act("a", "commit")
    committed = applications.committed()
    assert {offset for offset, _ in committed.values()} == {20}
    found = reports(committed)
    assert found.owners.tolist() == [member_hash(state["member"])] * PARTITIONS
    elapsed, waiting, handler, calls, records, busy, squares, paused, _ = found.numbers.T
    inside, outside = 1e3 * np.array([state["took"][str(key)] for key in range(PARTITIONS)]).T
    between = 1e3 * state["between"] - outside.sum()  # time that belongs to no record
    assert records.tolist() == [20] * PARTITIONS
    assert (inside - 1 <= busy).all()
    assert (busy <= outside + between + 1).all()
    assert (20 * (squares + 1) >= (busy - 1.0) ** 2).all()
    assert busy.sum() - PARTITIONS <= handler[0] <= 1e3 * state["between"] + 1
    assert 0 < waiting[0] <= 1e3 * state["polled"] + 1
    assert waiting[0] + handler[0] <= elapsed[0] + 2
    assert 0 < calls[0] <= sum(records)
    assert not paused.any()


@pytest.mark.kafka
def test_all_explicit_commits_carry_reports(applications: Applications) -> None:
    """Every form of commit carries reports, unless the application gives its own metadata."""
    applications.send(1)
    applications.start("a", group_protocol="consumer")
    applications.act("a", "assign")
    applications.act("a", "read", number=20)
    for commit, offset in (
        ("commit", 20),
        ("commit an offset", 3),
        ("commit in time", 20),
        ("commit a report", 3),
        ("commit without waiting", 20),
        ("commit with a callback", 3),
    ):
        state = applications.act("a", commit)
        committed = applications.committed()
        assert committed[0][0] == offset, commit
        assert reports(committed).owners.tolist() == [member_hash(state["member"])], commit
    assert state["calls"] == ["0:20:", "0:3:"]
    applications.act("a", "commit own metadata")
    assert applications.committed() == {0: (3, "own")}
    applications.send(1)
    applications.act("a", "read on another thread")
    applications.act("a", "commit")
    assert reports(applications.committed()).numbers[:, 7].tolist() == [TIMES_UNKNOWN]


@pytest.mark.kafka
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_automatic_commits_lose_nothing_and_carry_reports(
    applications: Applications, protocol: str
) -> None:
    """Commits on revocation, unsubscribe and close carry reports; no record is read twice."""
    automatic = {"enable_auto_commit": "true", "auto_commit_interval_ms": "3600000"}
    applications.send(*WORK_MS)
    applications.start("a", group_protocol=protocol, **automatic)
    applications.act("a", "subscribe with a listener")
    applications.act("a", "read", number=20 * PARTITIONS)
    assert applications.committed() == {}
    applications.start("b", group_protocol=protocol, **automatic)
    applications.act("b", "subscribe")
    everything = list(range(PARTITIONS))
    a, b = applications.read(
        *("a", "b"),
        until=lambda a, b: b["assigned"] and sorted(a["assigned"] + b["assigned"]) == everything,
    )
    of_a, of_b = member_hash(a["member"]), member_hash(b["member"])
    committed = applications.committed()
    assert {offset for offset, _ in committed.values()} == {20}
    assert reports(committed).owners.tolist() == [of_a] * PARTITIONS
    assert any(call.startswith("revoked") for call in a["calls"])
    applications.send(*WORK_MS)
    a, b = applications.read(
        *("a", "b"), until=lambda a, b: len(a["read"] + b["read"]) >= 40 * PARTITIONS
    )
    assert len(set(a["read"] + b["read"])) == len(a["read"] + b["read"])
    applications.act("b", "unsubscribe")
    applications.act("a", "wake up and close")
    committed = applications.committed()
    assert {offset for offset, _ in committed.values()} == {40}
    owners = [of_b if number in b["assigned"] else of_a for number in everything]
    assert reports(committed).owners.tolist() == owners


@pytest.mark.kafka
def test_automatic_commits_are_made_while_poll_waits(applications: Applications) -> None:
    """A poll that finds no records still commits the initial position, with a report."""
    applications.send(1)
    automatic = {"enable_auto_commit": "true", "auto_commit_interval_ms": "500"}
    applications.start("a", group_protocol="consumer", auto_offset_reset="latest", **automatic)
    applications.act("a", "assign")
    applications.act("a", "poll until a commit")
    committed = applications.committed()
    assert {offset for offset, _ in committed.values()} == {20}
    assert reports(committed).numbers[:, 4].tolist() == [0]


@pytest.mark.kafka
def test_a_setting_switches_reports_off(applications: Applications) -> None:
    """With `fairlead.report.work=false`, explicit and automatic commits have no metadata."""
    applications.send(1)
    automatic = {"enable_auto_commit": "true", "fairlead_report_work": "false"}
    applications.start("a", group_protocol="consumer", **automatic)
    applications.act("a", "assign")
    applications.act("a", "read", number=20)
    applications.act("a", "commit")
    assert applications.committed() == {0: (20, "")}
    applications.send(1)
    applications.act("a", "read", number=40)
    applications.act("a", "close")
    assert applications.committed() == {0: (40, "")}


@pytest.mark.kafka
@pytest.mark.test_long(
    guarded_by="tests/jvm/test_metered_consumer.py::test_all_explicit_commits_carry_reports"
)
@pytest.mark.parametrize("acknowledged", ["RECORD", "BATCH"])
def test_listeners_of_spring_report_their_work(
    applications: Applications, java_classpath: str, tmp_path: Path, acknowledged: str
) -> None:
    """All commits of Spring's containers carry reports, with at least the listener's time."""
    applications.send(*WORK_MS)
    servers, group = (applications.configs[key] for key in ("bootstrap.servers", "group.id"))
    records = str(20 * PARTITIONS)
    took = listen(
        java_classpath, tmp_path, servers, group, applications.topic, acknowledged, records
    )
    committed = applications.committed()
    assert {offset for offset, _ in committed.values()} == {20}
    _, _, handler, _, records_of, busy, *_ = reports(committed).numbers.T
    assert records_of.tolist() == [20] * PARTITIONS
    assert (1e3 * np.array(took) - 1 <= busy).all()
    assert (busy <= handler + 1).all()


def test_documentation_has_the_tested_listener_factory() -> None:
    """The listener factory in docs/consumers/java.md is the one that is tested here."""
    line = "return new MeteredConsumer<>(configs, getKeyDeserializer(), getValueDeserializer());"
    docs = Path(__file__).parents[2] / "docs" / "consumers" / "java.md"
    assert line in LISTENER.read_text()
    assert line in docs.read_text()
