"""The gateway on a real broker: data about valid and invalid groups."""

# ruff: noqa: PLR0917 - pytest passes fixtures by name

import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, OffsetSpec

from fairlead.domain.samples import GroupSnapshot, by_partition, ownership
from fairlead.errors import GroupError, KafkaUnavailableError
from fairlead.kafka.commits import fetch_commits
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.offsets import UNLISTED_TOPICS_PER_GROUP, described_topics, topic_sizes
from fairlead.settings import KafkaSettings, Settings
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka
Fixture = Callable[..., Any]


@pytest.fixture
def admin(settings: Settings) -> AdminClient:
    """Return an admin client of librdkafka."""
    return AdminClient(settings.kafka.librdkafka())


def delete(admin: AdminClient, topic: str) -> None:
    """Delete a topic, and wait until the broker does not list it any more."""

    def forgotten() -> bool:
        first = TopicPartition(topic, 0)
        level = IsolationLevel.READ_UNCOMMITTED
        try:
            results = admin.list_offsets({first: OffsetSpec.earliest()}, isolation_level=level)
            results[first].result(PATIENCE_S)
        except KafkaException:
            return True
        return False

    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    eventually(forgotten, f"topic {topic} is gone")


def offsets_of(snapshot: GroupSnapshot) -> list[tuple[Any, ...]]:
    """Return the number, begin offset, end offset and committed offset of each partition."""
    columns = by_partition(snapshot.samples).select(["partition", "begin", "end", "committed"])
    return list(zip(*columns.to_pydict().values(), strict=True))


def errors_of(snapshot: GroupSnapshot) -> list[str]:
    """Return the error of each group in the snapshot; empty: none."""
    return [error or "" for error in snapshot.samples["error"].to_pylist()]


def measured_groups(snapshot: GroupSnapshot) -> list[str]:
    """Return the group of each partition in the snapshot."""
    return list(by_partition(snapshot.samples)["group"].to_pylist())


def test_lists_groups_with_and_without_members(
    gateway: KafkaGateway, kafka_topic: Fixture, join: Fixture, commit: Fixture, unique_name: str
) -> None:
    """Groups that have or had members are listed; groups with only commits are in `memberless`."""
    topic = kafka_topic()
    join(f"{unique_name}-live", [topic], 1, [{}])
    (leaver,) = join(f"{unique_name}-left", [topic], 1, [{}])
    leaver.unsubscribe()
    commit(f"{unique_name}-mere", {(topic, 0): 0})

    mine = [group for group in gateway.list_groups() if group.startswith(unique_name)]

    assert mine == [f"{unique_name}-left", f"{unique_name}-live"]
    listed = gateway.listed_groups()
    assert set(listed.consumer) >= set(mine)
    assert f"{unique_name}-mere" in listed.memberless


def test_a_group_with_a_very_long_name_is_left_out(
    gateway: KafkaGateway,
    kafka_topic: Fixture,
    join: Fixture,
    unique_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Other groups are listed; a warning names the group that is left out, and the reason."""
    topic, endless = kafka_topic(), f"{unique_name}-{'x' * 6_000}"
    join(endless, [topic], 1, [{}])
    join(unique_name, [topic], 1, [{}])
    mine = [group for group in gateway.list_groups() if group.startswith(unique_name)]
    assert mine == [unique_name]
    assert f"Group {endless[:80]}... is left out: its id has {len(endless):,} bytes" in caplog.text


def test_a_topic_that_grew_has_all_its_partitions(
    gateway: KafkaGateway, admin: AdminClient, kafka_topic: Fixture, join: Fixture, unique_name: str
) -> None:
    """Partitions added since the members' last rebalance are listed without an owner."""
    topic = kafka_topic()
    join(unique_name, [topic], 1, [{"client.id": "a"}])
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(PATIENCE_S)

    def count() -> int:
        return len(admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions)

    eventually(lambda: count() == 3, "the topic grows")

    snapshot = gateway.snapshot([unique_name])

    assert [row[0] for row in offsets_of(snapshot)] == [0, 1, 2]
    (row,) = snapshot.samples.to_pylist()
    assert ownership(row) == {"a": {topic: [0]}}


@pytest.mark.parametrize("name", [b"", b"\0", b"a b"])
def test_impossible_topic_name_is_an_error_of_its_group(
    gateway: KafkaGateway,
    kafka_topic: Fixture,
    join: Fixture,
    join_raw: Fixture,
    unique_name: str,
    name: bytes,
) -> None:
    """A subscription to a name that Kafka does not allow is an error of the group."""
    topics = struct.pack(">ih", 1, len(name)) + name
    join_raw(f"{unique_name}-bad", b"\x00\x00" + topics + b"\x00\x00\x00\x00")
    join(f"{unique_name}-good", [kafka_topic()], 1, [{"client.id": "a"}])

    snapshot = gateway.snapshot([f"{unique_name}-good", f"{unique_name}-bad"])

    bad, good = errors_of(snapshot)
    assert "a name that Kafka does not allow" in bad
    assert not good
    assert measured_groups(snapshot) == [f"{unique_name}-good"]


def test_thousands_of_missing_topics_are_not_requested(
    gateway: KafkaGateway,
    kafka_topic: Fixture,
    join_raw: Fixture,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group with too many missing topics gets an error; the topics are not requested."""
    looked_up: list[str] = []

    def note(admin: AdminClient, topics: Sequence[str], timeout_s: float) -> Any:
        looked_up.extend(topics)
        return described_topics(admin, topics, timeout_s)

    monkeypatch.setattr("fairlead.kafka.offsets.described_topics", note)
    topic = kafka_topic()
    missing = [f"{unique_name}-{number}" for number in range(UNLISTED_TOPICS_PER_GROUP + 1)]
    few = missing[:3]
    for name, topics in (("many", [topic, *missing]), ("few", [topic, *few])):
        names = b"".join(struct.pack(">h", len(text)) + text.encode() for text in topics)
        subscribed = struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", 0)
        join_raw(f"{unique_name}-{name}", subscribed)

    snapshot = gateway.snapshot([f"{unique_name}-few", f"{unique_name}-many"])

    assert looked_up == few
    fine, refused = errors_of(snapshot)
    assert not fine
    assert refused.startswith(f"It reads {len(missing):,} topics that the cluster does not list")
    with pytest.raises(GroupError, match="the cluster does not list"):
        gateway.live_group(f"{unique_name}-many")


def test_errors_of_groups_do_not_affect_others(
    gateway: KafkaGateway,
    kafka_topic: Fixture,
    commit: Fixture,
    join_raw: Fixture,
    unique_name: str,
) -> None:
    """An invalid answer about one group is an error of this group only.

    The first bad group makes kafka-python fail on the response for all groups of a request. The
    second has metadata of another protocol type, and the third does not exist.
    """
    topic = kafka_topic()
    good = [f"{unique_name}-{number:02}" for number in range(12)]
    for group in good:
        commit(group, {(topic, 0): 0})
    bad = [f"{good[2]}-spoils", f"{good[7]}-other", f"{good[9]}-absent"]
    join_raw(bad[0], b"\x00\x00\x7f\xff")
    join_raw(bad[1], b"\x00\x01\x00")

    snapshot = gateway.snapshot([*good, *bad])

    errors = dict(zip(snapshot.samples["group"].to_pylist(), errors_of(snapshot), strict=True))
    assert {group for group, error in errors.items() if error} == set(bad)
    assert measured_groups(snapshot) == good


def test_a_rebalance_that_does_not_end_is_an_error(
    settings: Settings, join_raw: Fixture, unique_name: str
) -> None:
    """A group that does not settle in time has an error, and no members, in the sample."""
    join_raw(unique_name, b"\x00\x00" + b"\x00\x00\x00\x00" + b"\x00\x00\x00\x00", settle=False)
    with KafkaGateway(settings.kafka) as gateway:
        snapshot = gateway.snapshot([unique_name], patience_s=1.0)  # clock: endless rebalance

    (error,) = errors_of(snapshot)
    assert "rebalancing (CompletingRebalance)" in error


def test_end_offsets_are_read_after_committed_ones(
    gateway: KafkaGateway,
    kafka_topic: Fixture,
    produce: Fixture,
    commit: Fixture,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """End offsets are read last, so that no commit in the sample is beyond its end offset."""
    topic = kafka_topic()
    produce(topic, [1])
    commit(unique_name, {(topic, 0): 1})

    def read_then_move_on(*arguments: Any) -> Any:
        answer = fetch_commits(*arguments)
        produce(topic, [4])
        commit(unique_name, {(topic, 0): 5})
        return answer

    monkeypatch.setattr("fairlead.kafka.gateway.fetch_commits", read_then_move_on)

    assert offsets_of(gateway.snapshot([unique_name])) == [(0, 0, 5, 1)]


@pytest.mark.parametrize("question", ["list_groups", "snapshot"])
def test_an_unreachable_broker_is_a_transient_error(question: str) -> None:
    """The error comes after the time-out in the settings; librdkafka would wait longer."""
    nowhere = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    librdkafka = AdminClient(nowhere)
    by_itself: Any = librdkafka.list_consumer_groups()  # returns after a minute
    settings = KafkaSettings(
        bootstrap_servers="127.0.0.1:1",
        request_timeout_s=1.0,  # clock: no broker answers
    )
    with (
        KafkaGateway(settings) as gateway,
        pytest.raises(KafkaUnavailableError, match="does not answer"),
    ):
        gateway.list_groups() if question == "list_groups" else gateway.snapshot(["any"])
    assert not by_itself.done()


def test_a_server_that_is_no_broker_leaves_no_thread() -> None:
    """The gateway ends kafka-python's thread, because the thread would retry forever."""
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = KafkaSettings(
            bootstrap_servers=f"127.0.0.1:{silent.getsockname()[1]}",
            request_timeout_s=1.0,  # clock: no broker answers
        )
        with KafkaGateway(settings) as gateway, pytest.raises(KafkaUnavailableError):
            gateway.list_groups()

    def left() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if "kafka-io" in thread.name} - before

    eventually(lambda: not left(), left)


def test_unreadable_commits_are_an_error_of_their_group(
    gateway: KafkaGateway,
    kafka_topic: Fixture,
    commit: Fixture,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sample of the group has the error but no partitions; other groups are complete."""
    topic = kafka_topic()
    for name in ("a", "b"):
        commit(f"{unique_name}-{name}", {(topic, 0): 0})

    def refuse_one(*arguments: Any) -> Any:
        answers = fetch_commits(*arguments)
        del answers.values[f"{unique_name}-a"]
        answers.errors[f"{unique_name}-a"] = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
        return answers

    monkeypatch.setattr("fairlead.kafka.gateway.fetch_commits", refuse_one)
    snapshot = gateway.snapshot([f"{unique_name}-a", f"{unique_name}-b"])

    refused, fine = errors_of(snapshot)
    assert refused.startswith("Its commits cannot be read")
    assert not fine
    assert measured_groups(snapshot) == [f"{unique_name}-b"]


def test_commits_of_a_deleted_topic_are_left_out(
    gateway: KafkaGateway,
    admin: AdminClient,
    kafka_topic: Fixture,
    produce: Fixture,
    commit: Fixture,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A topic that is deleted after its commits were read is left out, without an error."""
    kept, gone = kafka_topic(f"{unique_name}-a"), kafka_topic(f"{unique_name}-b")
    produce(kept, [2])
    produce(gone, [2])
    commit(unique_name, {(kept, 0): 1, (gone, 0): 1})

    # Delete the topic after its commits were read: Kafka deletes the commits of deleted topics.
    def delete_then_count(*arguments: Any) -> Any:
        delete(admin, gone)
        return topic_sizes(*arguments)

    monkeypatch.setattr("fairlead.kafka.gateway.topic_sizes", delete_then_count)
    snapshot = gateway.snapshot([unique_name])

    assert snapshot.samples["topics"].to_pylist() == [[kept]]
    assert offsets_of(snapshot) == [(0, 0, 2, 1)]
    assert errors_of(snapshot) == [""]


def test_request_after_a_time_out_uses_a_new_client(
    settings: Settings, kafka_topic: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has lost its controller may wait for minutes, so it is replaced."""
    topic = kafka_topic()
    lost = AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    with KafkaGateway(settings.kafka) as gateway:

        def fail_once(ask: Callable[[], object]) -> None:
            monkeypatch.setattr(gateway, "_admin", lost)
            with monkeypatch.context() as hasty:
                hasty.setattr(gateway, "_timeout_s", 1.0)
                with pytest.raises(KafkaUnavailableError):
                    ask()

        fail_once(lambda: gateway.topics_of([topic]))
        assert topic in gateway.topics_of([topic])


def test_a_subscription_may_name_absent_topics(
    gateway: KafkaGateway, kafka_topic: Fixture, join: Fixture, unique_name: str
) -> None:
    """The sample has all subscribed topics that exist; missing ones cause no error."""
    first, second = kafka_topic(f"{unique_name}-a"), kafka_topic(f"{unique_name}-b", partitions=2)
    join(unique_name, [first, second, f"{unique_name}-absent"], 3, [{"client.id": "a"}])

    snapshot = gateway.snapshot([unique_name])

    assert snapshot.samples["topics"].to_pylist() == [[first, second]]
    assert snapshot.samples["counts"].to_pylist() == [[1, 2]]
    assert errors_of(snapshot) == [""]
