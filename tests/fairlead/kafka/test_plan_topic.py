"""The plan topic on a real broker."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka import KafkaProducer

from fairlead.errors import ConfigurationError
from fairlead.followers.kafka_python.plan_source import KafkaPythonSource
from fairlead.kafka.plan_channel import LARGEST_PLAN_BYTES
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings, Settings
from fairlead.wire.partitions import partition_for_key
from tests.records import newest_record, publish
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka


@pytest.fixture
def own(settings: Settings, unique_name: str) -> Iterator[KafkaSettings]:
    """Return settings for a plan topic that only this test uses, with six partitions."""
    yield settings.kafka.model_copy(update={"plan_topic": unique_name, "plan_topic_partitions": 6})
    admin = AdminClient(settings.kafka.librdkafka())
    if unique_name in admin.list_topics(timeout=PATIENCE_S).topics:
        admin.delete_topics([unique_name])[unique_name].result(PATIENCE_S)


@pytest.fixture
def topic(own: KafkaSettings) -> Iterator[PlanTopic]:
    """Return the plan topic, already created on the broker."""
    with PlanTopic(own) as topic:
        topic.ensure()
        yield topic


def test_ensure_creates_a_compacted_topic_once(topic: PlanTopic, own: KafkaSettings) -> None:
    """The topic is compacted and allows large plans; a second call changes nothing."""
    topic.ensure()
    admin = AdminClient(own.librdkafka())
    resource = ConfigResource(ResourceType.TOPIC, own.plan_topic)
    config = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    assert config["cleanup.policy"].value == "compact"
    assert config["max.message.bytes"].value == str(LARGEST_PLAN_BYTES)
    topics = admin.list_topics(own.plan_topic, timeout=PATIENCE_S).topics
    assert len(topics[own.plan_topic].partitions) == 6


def test_ensure_refuses_a_topic_that_deletes_plans(
    own: KafkaSettings, kafka_topic: Callable[..., Any]
) -> None:
    """If the topic's cleanup policy deletes plans, the error has the command to change it."""
    name = kafka_topic(config={"cleanup.policy": "delete"})
    forgetful = own.model_copy(update={"plan_topic": name})
    with (
        PlanTopic(forgetful) as topic,
        pytest.raises(ConfigurationError, match=r"cleanup\.policy=delete.*kafka-configs\.sh"),
    ):
        topic.ensure()


def test_followers_need_no_codec(
    topic: PlanTopic, own: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan follower without any compression codec can read records that a producer compressed."""
    codecs = ("lz4", "snappy", "zstd", "gzip")
    for codec in codecs:
        monkeypatch.setattr(f"kafka.codec.has_{codec}", lambda: False)
        send_compressed(topic, codec, 10_000, own)
    with closing(follow(topic, own)) as source:
        values: list[bytes | None] = []
        while not source.at_end():
            values += [record.value for record in source.read(1.0)]
    assert values == [codec.encode() * 10_000 for codec in codecs]


def test_brokers_limit_the_decompressed_size(topic: PlanTopic, own: KafkaSettings) -> None:
    """A small compressed record is refused if it decompresses to more than the largest plan."""
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        send_compressed(topic, "gzip", LARGEST_PLAN_BYTES, own)


def send_compressed(topic: PlanTopic, codec: str, times: int, own: KafkaSettings) -> None:
    """Send a record that repeats the codec's name, compressed with the codec."""
    compressed = {"compression.type": codec, "message.max.bytes": 100_000_000}
    producer = Producer(own.librdkafka(**compressed))
    partition = topic.partition_for_key("orders")
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        refused.extend([error] if error else [])

    producer.produce(
        topic.name, codec.encode() * times, key=b"x", partition=partition, on_delivery=delivered
    )
    assert producer.flush(PATIENCE_S) == 0
    if refused:
        raise KafkaException(refused[0])


def follow(topic: PlanTopic, own: KafkaSettings) -> KafkaPythonSource:
    """Return a plan follower's reader of the plan topic."""
    source = KafkaPythonSource.open(
        "orders", {"bootstrap_servers": own.bootstrap_servers}, topic.name
    )
    assert source is not None
    return source


def test_ensure_refuses_a_topic_without_enough_replicas(
    own: KafkaSettings, kafka_topic: Callable[..., Any]
) -> None:
    """A topic with fewer replicas than `min.insync.replicas` raises ConfigurationError."""
    name = kafka_topic(config={"cleanup.policy": "compact", "min.insync.replicas": "2"})
    kafka = own.model_copy(update={"plan_topic": name})
    with (
        PlanTopic(kafka) as topic,
        pytest.raises(ConfigurationError, match=r"1 copies.*min\.insync\.replicas=2.*replicas=1"),
    ):
        topic.ensure()


def test_keys_are_partitioned_by_kafkas_default(topic: PlanTopic, own: KafkaSettings) -> None:
    """Plans go to the partitions that kafka-python's producer chooses for the same keys."""
    groups = ["orders", "a", "b-2", "größe", "群", "x" * 200]
    producer = KafkaProducer(bootstrap_servers=own.bootstrap_servers)
    theirs = [
        producer.send(own.plan_topic, b"", key=group.encode()).get(PATIENCE_S).partition
        for group in groups
    ]
    producer.close()
    assert [publish(topic, group, b"", []).partition for group in groups] == theirs
    assert [partition_for_key(group, 6) for group in groups] == theirs


def test_plans_are_refused_only_beyond_the_maximum_size(topic: PlanTopic) -> None:
    """A plan of several megabytes is published; beyond the limit, ConfigurationError is raised."""
    large = bytes(LARGEST_PLAN_BYTES * 3 // 4)
    publish(topic, "orders", large, [])
    assert newest_record(topic).value == large
    with pytest.raises(ConfigurationError, match=r"record of group orders.*size"):
        publish(topic, "orders", bytes(LARGEST_PLAN_BYTES + 1), [])
