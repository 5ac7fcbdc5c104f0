"""Real consumers add reports of their work to commits, which are otherwise unchanged."""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPythonPartition
from kafka.structs import OffsetAndMetadata

from fairlead.common.librdkafka import kafka_error
from fairlead.followers import FollowOptions, aiokafka, kafka_python
from fairlead.followers.confluent import PlanConsumer
from fairlead.kafka.commits import fetch_commits
from fairlead.kafka.gateway import KafkaGateway
from fairlead.sandbox import Services
from fairlead.settings import Settings
from fairlead.wire.work_report import WorkReport, member_hash, read_reports
from tests.waiting import PATIENCE_S, eventually, returned

# clocks: applications measure their own work

pytestmark = pytest.mark.kafka

PARTITIONS: Final = (0, 1)
#: Milliseconds: session timeout for busy machines; a long and a short auto-commit interval.
SESSION_MS, NEVER_MS, SOON_MS = 60_000, 1_700_000, 100
MINE: Final = "mine"


#: Each partition's committed offset and metadata.
Commits = dict[int, tuple[int, bytes]]


@dataclass
class Group:
    """A group that reads a topic of two partitions; `commits` and `members` ask the broker."""

    services: Services
    settings: Settings
    admin: KafkaAdminClient
    name: str
    topic: str
    plan_topic: str
    coordination_topic: str
    ends: Counter[int] = field(default_factory=Counter)

    def produce(self, count: int) -> None:
        """Add records to each partition."""
        producer = Producer({"bootstrap.servers": self.services.bootstrap_servers})
        for partition in PARTITIONS:
            for _ in range(count):
                producer.produce(self.topic, b"value", partition=partition)
            self.ends[partition] += count
        assert producer.flush(PATIENCE_S) == 0

    def commits(self) -> Commits:
        """Return each partition's committed offset and metadata."""
        found = fetch_commits(self.admin, [self.name], PATIENCE_S).values[self.name]
        if self.topic not in found:
            return {}
        its = found[self.topic]
        return {
            int(partition): (int(offset), metadata)
            for partition, offset, metadata in zip(
                its.partitions, its.offsets, its.metadata, strict=True
            )
        }

    def members(self) -> set[str]:
        """Return the hashes of the present members' ids."""
        with KafkaGateway(self.settings.kafka) as gateway:
            members = gateway.live_group(self.name).members
        return {member_hash(member.member_id) for member in members}


@pytest.fixture
def group(
    services: Services, settings: Settings, unique_name: str, kafka_topic: Callable[..., str]
) -> Iterator[Group]:
    topic, plan_topic, coordination_topic = (kafka_topic(partitions=count) for count in (2, 1, 1))
    with closing(KafkaAdminClient(bootstrap_servers=services.bootstrap_servers)) as admin:
        yield Group(services, settings, admin, unique_name, topic, plan_topic, coordination_topic)


class Application(ABC):
    """An application that takes records with a real consumer, and measures its own work.

    Parameters
    ----------
    group
        The group of the consumer.
    take
        The way of taking records: one of `takes`.
    interval_ms
        Interval of automatic commits; None: no automatic commits.
    """

    consumer: Any
    #: Ways of taking records, and of committing, that the client offers.
    takes: tuple[str, ...]
    commits: tuple[str, ...]

    def __init__(
        self, group: Group, take: str, interval_ms: int | None = None, **options: Any
    ) -> None:
        self.group, self.take = group, take
        self.handled: Counter[int] = Counter()
        self.busy_s: Counter[int] = Counter()
        self.reported: list[Any] = []
        self.began = time.perf_counter()
        self._open(interval_ms, options)

    def handle(self, partition: int) -> None:
        """Process a record, and measure the time."""
        began = time.perf_counter()
        time.sleep(0.001 * (1 + 3 * partition))
        self.handled[partition] += 1
        self.busy_s[partition] += time.perf_counter() - began  # type: ignore[assignment] # a float

    def take_all(self) -> None:
        """Process all records."""
        eventually(self._take_some, lambda: f"handled {self.handled}")

    def pause(self, partition: Any) -> None:
        """Pause a partition."""
        self.consumer.pause(partition)

    def _take_some(self) -> bool:
        if self.handled != self.group.ends:
            self._take()
        return self.handled == self.group.ends

    def _settings(self, interval_ms: int | None) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.group.services.bootstrap_servers,
            "group_id": self.group.name,
            "plan_topic": self.group.plan_topic,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": interval_ms is not None,
            "auto_commit_interval_ms": interval_ms or NEVER_MS,
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 300,
        }

    @abstractmethod
    def _open(self, interval_ms: int | None, options: dict[str, Any]) -> None: ...

    @abstractmethod
    def _take(self) -> None: ...

    @abstractmethod
    def commit(self, way: str, metadata: str = "") -> None:
        """Commit the processed records."""

    @abstractmethod
    def idle(self) -> bool:
        """Let the client do its background work; return True."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group."""


class KafkaPythonApplication(Application):
    """Application with kafka-python."""

    takes = ("poll", "iterate")
    commits = ("commit", "commit offsets", "commit_async", "commit_async offsets")

    def _open(self, interval_ms: int | None, options: dict[str, Any]) -> None:
        self.consumer = kafka_python.PlanConsumer(
            self.group.topic, consumer_timeout_ms=100, **self._settings(interval_ms), **options
        )

    def _take(self) -> None:
        if self.take == "iterate":
            for record in self.consumer:
                self.handle(record.partition)
        else:
            for partition, records in self.consumer.poll(timeout_ms=100).items():
                for _ in records:
                    self.handle(partition.partition)

    def commit(self, way: str, metadata: str = "") -> None:
        """Commit the processed records."""
        offsets = {
            KafkaPythonPartition(self.group.topic, partition): OffsetAndMetadata(
                self.handled[partition], metadata, -1
            )
            for partition in PARTITIONS
        }
        given = (offsets,) if way.endswith("offsets") else ()
        if way.startswith("commit_async"):
            done: list[Any] = []
            self.consumer.commit_async(
                *given, callback=lambda offsets, response: done.append((offsets, response))
            )
            eventually(lambda: self.idle() and done, "the callback is called")
            ((seen, response),) = done
            assert not isinstance(response, Exception)
            assert {at: its.offset for at, its in seen.items()} == {
                at: its.offset for at, its in offsets.items()
            }
            assert {its.metadata for its in seen.values()} == {metadata}
        else:
            self.consumer.commit(*given)

    def idle(self) -> bool:
        """Let the client do its background work; return True."""
        self.consumer.poll(timeout_ms=10)
        return True

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()


class AiokafkaApplication(Application):
    """Application with aiokafka."""

    takes = ("getone", "getmany", "async for")
    commits = ("commit", "commit offsets")

    def _open(self, interval_ms: int | None, options: dict[str, Any]) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._start(interval_ms, options))

    async def _start(self, interval_ms: int | None, options: dict[str, Any]) -> None:
        self.consumer = aiokafka.PlanConsumer(
            self.group.topic, **self._settings(interval_ms), **options
        )
        await self.consumer.start()

    def _take(self) -> None:
        self._runner.run(self._take_records())

    async def _take_records(self) -> None:
        if self.take == "getmany":
            for partition, records in (await self.consumer.getmany(timeout_ms=100)).items():
                for _ in records:
                    self.handle(partition.partition)
            return
        while self.handled != self.group.ends:
            if self.take == "getone":
                self.handle((await self.consumer.getone()).partition)
            else:
                async for record in self.consumer:
                    self.handle(record.partition)
                    if self.handled == self.group.ends:
                        break

    def commit(self, way: str, metadata: str = "") -> None:
        """Commit the processed records."""
        offsets = {
            AiokafkaPartition(self.group.topic, partition): (self.handled[partition], metadata)
            for partition in PARTITIONS
        }
        given = (offsets,) if way.endswith("offsets") else ()
        self._runner.run(self.consumer.commit(*given))

    def pause(self, partition: Any) -> None:
        """Pause a partition."""

        async def pause() -> None:
            self.consumer.pause(partition)

        self._runner.run(pause())

    def idle(self) -> bool:
        """Let the client do its background work; return True."""
        self._runner.run(asyncio.sleep(0.05))
        return True

    def close(self) -> None:
        """Leave the group."""
        self._runner.run(self.consumer.stop())
        self._runner.close()


class ConfluentApplication(Application):
    """Application with confluent-kafka."""

    takes = ("poll", "consume")
    commits = (
        *("commit", "commit offsets", "commit message"),
        *("commit async", "store_offsets message", "store_offsets offsets"),
    )

    def _open(self, interval_ms: int | None, options: dict[str, Any]) -> None:
        report_work = options.pop("report_work", True)
        self.last: dict[int, Message] = {}
        self.callbacks: list[list[TopicPartition]] = []
        self.consumer = PlanConsumer(
            {
                "bootstrap.servers": self.group.services.bootstrap_servers,
                "group.id": self.group.name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": interval_ms is not None,
                "auto.commit.interval.ms": interval_ms or NEVER_MS,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 300,
                "on_commit": lambda _, offsets: self.callbacks.append(offsets),
                **options,
            },
            options=FollowOptions(self.group.plan_topic, report_work=report_work),
            coordination_topic=self.group.coordination_topic,
        )
        self.consumer.subscribe([self.group.topic])

    def _take(self) -> None:
        if self.take == "poll":
            messages = [self.consumer.poll(0.1)]
        else:
            messages = self.consumer.consume(1000, 0.1)
        for message in messages:
            if message is not None:
                assert message.error() is None
                self.handle(message.partition())
                self.last[message.partition()] = message

    def commit(self, way: str, metadata: str = "") -> None:
        """Commit the processed records."""
        offsets = [
            TopicPartition(self.group.topic, partition, self.handled[partition], metadata)
            for partition in PARTITIONS
        ]
        if way.startswith("store_offsets"):
            if way.endswith("message"):
                for message in self.last.values():
                    self.consumer.store_offsets(message)
            else:
                self.consumer.store_offsets(offsets=offsets)
            way = "commit"
        committed: list[TopicPartition] = []
        if way == "commit async":
            self.callbacks.clear()
            self.consumer.commit()
            eventually(lambda: self.idle() and self.callbacks, "on_commit is called")
            committed = self.callbacks[0]
        elif way == "commit message":
            for message in self.last.values():
                committed += self.consumer.commit(message, asynchronous=False) or []
        else:
            given = {"offsets": offsets} if way.endswith("offsets") else {}
            committed = self.consumer.commit(asynchronous=False, **given) or []
        assert {its.partition: its.offset for its in committed} == dict(self.handled)
        assert {its.metadata or "" for its in committed} == {metadata}

    def pause(self, partition: Any) -> None:
        """Pause a partition."""
        self.consumer.pause([partition])

    def idle(self) -> bool:
        """Let the client do its background work; return True."""
        message = self.consumer.poll(0.01)
        assert message is None
        return True

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()


APPLICATIONS: Final = (KafkaPythonApplication, AiokafkaApplication, ConfluentApplication)
EACH = pytest.mark.parametrize("kind", APPLICATIONS)
EACH_TAKE = pytest.mark.parametrize(
    ("kind", "take"),
    [(kind, take) for kind in APPLICATIONS for take in kind.takes],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)


def reports(commits: Commits, owners: set[str]) -> dict[int, WorkReport]:
    """Return each partition's report; fail if one is missing or not from `owners`."""
    found = read_reports([commits[partition][1] for partition in PARTITIONS])
    assert found.place.tolist() == [*PARTITIONS], commits
    assert {*found.owners.tolist()} <= owners
    return {at: WorkReport(*row) for at, row in enumerate(found.numbers.tolist())}


def check(
    app: Application, owners: set[str], commits: Commits | None = None, *, all_records: bool = True
) -> None:
    """Assert that the reports agree with the application's own measurements."""
    commits = commits or app.group.commits()
    assert {partition: offset for partition, (offset, _) in commits.items()} == app.group.ends
    elapsed_ms = (time.perf_counter() - app.began) * 1e3
    for partition, report in reports(commits, owners).items():
        assert 0 < report.records <= app.handled[partition]
        assert report.busy_ms <= report.handler_ms + 1
        assert report.handler_ms + report.waiting_ms <= report.elapsed_ms + 2 <= elapsed_ms + 3
        if all_records:
            assert report.records == app.handled[partition]
            assert report.busy_ms >= app.busy_s[partition] * 1e3 - 1
            assert report.handler_ms >= sum(app.busy_s.values()) * 1e3 - 1


@EACH_TAKE
def test_explicit_commits_carry_reports(group: Group, kind: type[Application], take: str) -> None:
    """Commits by each method carry reports, unless the application sets its own metadata."""
    app = kind(group, take)
    for way in app.commits:
        group.produce(10)
        app.take_all()
        app.commit(way)
        check(app, group.members())
        if way in {"commit offsets", "commit_async offsets"}:
            app.commit(way, MINE)
            assert {text.rstrip(b"\0") for _, text in group.commits().values()} == {MINE.encode()}
    app.close()


@EACH_TAKE
def test_automatic_commits_carry_reports(group: Group, kind: type[Application], take: str) -> None:
    """Automatic commits carry reports, for each way of taking records."""
    app = kind(group, take, SOON_MS)

    def committed() -> bool:
        app.idle()
        return {at: offset for at, (offset, _) in group.commits().items()} == group.ends

    for _ in range(2):  # commits of the second batch report the first batch
        group.produce(10)
        app.take_all()
        eventually(committed, group.commits)
    check(app, group.members(), all_records=False)
    app.close()


@EACH
def test_commits_on_revocation_and_close_carry_reports(
    group: Group, kind: type[Application]
) -> None:
    """Members commit only on revocation and on close, and these commits report all records."""
    app = kind(group, kind.takes[0], NEVER_MS)
    group.produce(10)
    app.take_all()
    before = group.members()
    assert group.commits() == {}
    leaving, committed = threading.Event(), Commits()

    def commits_when_revoked() -> bool:
        app.idle()
        committed.update(group.commits())  # before the other consumer commits
        return bool(committed)

    def take_part() -> None:
        other = kind(group, kind.takes[0], NEVER_MS)
        while not leaving.is_set():
            other.idle()
        other.close()

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(take_part)
        try:
            eventually(commits_when_revoked, "commits when it is revoked")
        finally:
            leaving.set()
        check(app, before, committed)
        eventually(lambda: app.idle() and other.done(), "the other one has left")
        other.result()
    group.produce(10)
    app.take_all()
    members = group.members() | before
    app.close()
    check(app, members)


@EACH
def test_nothing_is_reported_if_switched_off(group: Group, kind: type[Application]) -> None:
    """With `report_work=False`, metadata is empty and the status has no report."""
    app = kind(group, kind.takes[0], report_work=False)
    group.produce(10)
    app.take_all()
    app.commit("commit")
    assert {text.rstrip(b"\0") for _, text in group.commits().values()} == {b""}
    assert status(app).reported is None
    app.close()


@EACH
def test_status_shows_what_is_reported(group: Group, kind: type[Application]) -> None:
    """The status has the numbers of records and paused partitions, and the share of busy time."""
    app = kind(group, kind.takes[0])
    group.produce(10)
    app.take_all()
    partition: Any = {
        KafkaPythonApplication: KafkaPythonPartition,
        AiokafkaApplication: AiokafkaPartition,
        ConfluentApplication: TopicPartition,
    }[kind](group.topic, 0)
    app.pause(partition)
    reported = status(app).reported
    assert (reported.records, reported.paused, reported.several_at_a_time) == (20, 1, False)
    assert 0 < reported.busy_share <= 1
    assert str(reported).startswith("20 records, busy ")
    app.close()


def status(app: Application) -> Any:
    source = app.consumer if isinstance(app, ConfluentApplication) else app.consumer.plan_assignor
    return source.status()


def test_concurrent_tasks_are_noticed(group: Group) -> None:
    """The status shows whether tasks take records concurrently, instead of one after the other."""
    app = AiokafkaApplication(group, "getone")
    group.produce(10)

    async def take() -> None:
        for _ in range(5):
            app.handle((await app.consumer.getone()).partition)
            await asyncio.sleep(0.01)

    async def one_after_the_other() -> None:
        for _ in range(2):
            await asyncio.create_task(take())

    async def together() -> None:
        await asyncio.gather(take(), take())

    app._runner.run(one_after_the_other())  # noqa: SLF001 - this test's
    assert not status(app).reported.several_at_a_time
    app._runner.run(together())  # noqa: SLF001 - as above
    assert status(app).reported.several_at_a_time
    app.close()


@pytest.mark.parametrize("take", ["getone", "getmany"])
def test_waiting_with_aiokafka_is_noticed(group: Group, take: str) -> None:
    """The share of busy time is 1 before the first wait for records, and falls while waiting."""
    app = AiokafkaApplication(group, take)

    async def take_none() -> None:
        if take == "getone":
            with suppress(TimeoutError):
                await asyncio.wait_for(app.consumer.getone(), 0.1)
        else:
            assert await app.consumer.getmany(timeout_ms=100) == {}

    assert status(app).reported.busy_share == 1
    eventually(
        lambda: (app._runner.run(take_none()), status(app).reported.busy_share < 1)[1],  # noqa: SLF001 - this test's
        "it waits",
    )
    app.close()


def test_offsets_in_a_transaction_carry_no_report(group: Group) -> None:
    """Offsets committed through a producer have the application's metadata or none."""
    app = ConfluentApplication(group, "poll")
    group.produce(10)
    app.take_all()
    producer = Producer(
        {
            "bootstrap.servers": group.services.bootstrap_servers,
            "transactional.id": group.name,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    offsets = [TopicPartition(group.topic, 0, 3, MINE), TopicPartition(group.topic, 1, 4)]
    producer.send_offsets_to_transaction(
        offsets, app.consumer.consumer_group_metadata(), PATIENCE_S
    )
    producer.commit_transaction(PATIENCE_S)
    eventually(group.commits, "the transaction has ended")
    found = {at: (offset, text.rstrip(b"\0")) for at, (offset, text) in group.commits().items()}
    assert found == {0: (3, MINE.encode()), 1: (4, b"")}
    app.close()


def test_librdkafka_commits_while_a_batch_is_processed(group: Group) -> None:
    """The client's thread commits stored offsets while the application makes no calls."""
    app = ConfluentApplication(group, "consume", SOON_MS)
    batches = 0
    while batches < 2:
        if app.handled == group.ends:
            group.produce(50)
        messages = returned(lambda: app.consumer.consume(1000, -1))
        counts = Counter(message.partition() for message in messages)
        app.handled.update(counts)
        if len(messages) < 16:  # the consumer stores offsets of smaller batches only later
            continue
        batches += 1
        expected = {at: app.handled[at] for at in counts}
        eventually(
            lambda: expected.items() <= {at: its[0] for at, its in group.commits().items()}.items(),  # noqa: B023 - at once
            lambda: f"{expected}, {group.commits()}",  # noqa: B023 - as above
        )
    app.close()


@dataclass
class Script:
    """Actions of an application that uses confluent-kafka's Consumer or a PlanConsumer."""

    consumer: Consumer
    topic: str
    errors: list[str] = field(default_factory=list)

    def poll(self, count: int) -> Message:
        """Take messages one at a time; return the last one."""
        last: list[Message] = []

        def enough() -> bool:
            message = self.consumer.poll(0.1)
            if message is not None and message.error() is None:
                last.append(message)
            return len(last) == count

        eventually(enough, lambda: f"{len(last)} of {count}")
        return last[-1]

    def consume(self, count: int) -> list[Message]:
        """Take messages in batches; return them all."""
        taken: list[Message] = []

        def enough() -> bool:
            messages = self.consumer.consume(count - len(taken), 0.1)
            taken.extend(message for message in messages if message.error() is None)
            return len(taken) == count

        eventually(enough, lambda: f"{len(taken)} of {count}")
        return taken

    def commit(self, **given: Any) -> None:
        """Commit at once; record the client's error, if any."""
        try:
            self.consumer.commit(asynchronous=False, **given)
        except KafkaException as error:
            self.errors.append(kafka_error(error).name())

    def seek(self, offset: int) -> None:
        """Seek to another offset."""
        self.consumer.seek(TopicPartition(self.topic, 0, offset))


def _raise_in_the_middle(script: Script) -> None:
    with suppress(LookupError):
        for message in script.consume(5):
            raise LookupError(message)
    script.poll(2)
    script.seek(3)


SCRIPTS: Mapping[str, Callable[[Any], object]] = {
    "poll": lambda its: (its.poll(5), its.commit()),
    "seek": lambda its: (its.poll(5), its.seek(2), its.commit()),
    "seek, poll": lambda its: (its.poll(5), its.commit(), its.seek(2), its.poll(1), its.commit()),
    "seek, close": lambda its: (its.consume(7), its.seek(2)),
    "commit message": lambda its: its.commit(message=its.poll(3)),
    "pause": lambda its: (
        its.poll(4),
        its.consumer.pause([TopicPartition(its.topic, 0)]),
        its.commit(),
        its.consumer.resume([TopicPartition(its.topic, 0)]),
        its.poll(2),
    ),
    "unsubscribe": lambda its: (its.poll(6), its.consumer.unsubscribe(), its.consumer.poll(1)),
    "exception": _raise_in_the_middle,
}


@pytest.mark.parametrize(
    "settings_given",
    [{}, {"enable.auto.commit": False}, {"enable.auto.offset.store": "false"}],
    ids=repr,
)
def test_commits_are_those_of_a_plain_consumer(
    group: Group, kafka_topic: Callable[..., str], settings_given: dict[str, Any]
) -> None:
    """The same calls lead to the same committed offsets and errors as with a plain consumer."""
    topic = kafka_topic()
    producer = Producer({"bootstrap.servers": group.services.bootstrap_servers})
    for _ in range(20):
        producer.produce(topic, b"value")
    assert producer.flush(PATIENCE_S) == 0

    def run(name: str, *, plain: bool) -> tuple[list[str], list[int]]:
        config = {
            "bootstrap.servers": group.services.bootstrap_servers,
            "group.id": f"{group.name}-{name}-{plain}",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": NEVER_MS,
            "session.timeout.ms": SESSION_MS,
            **settings_given,
        }
        options = FollowOptions(group.plan_topic)
        consumer = (
            Consumer(config)
            if plain
            else PlanConsumer(config, options=options, coordination_topic=group.coordination_topic)
        )
        consumer.subscribe([topic])
        script = Script(consumer, topic)
        SCRIPTS[name](script)
        consumer.close()
        found = fetch_commits(group.admin, [config["group.id"]], PATIENCE_S)
        commits = found.values[config["group.id"]]
        return script.errors, commits[topic].offsets.tolist() if topic in commits else []

    found: dict[bool, dict[str, Any]] = {}
    for plain in (True, False):
        found[plain] = {name: run(name, plain=plain) for name in SCRIPTS}
    assert found[False] == found[True]


def test_offsets_set_in_on_assign_are_used(group: Group) -> None:
    """The consumer starts at the set offsets, and reports only the records that it took."""
    group.produce(20)
    app = ConfluentApplication(group, "poll")

    def start_later(consumer: Any, partitions: list[TopicPartition]) -> None:
        consumer.assign([TopicPartition(its.topic, its.partition, 15) for its in partitions])

    app.consumer.subscribe([group.topic], on_assign=start_later)
    app.handled.update(dict.fromkeys(PARTITIONS, 15))
    app.take_all()
    app.commit("commit")
    found = reports(group.commits(), group.members())
    assert {report.records for report in found.values()} == {5}
    app.close()
