"""Sampling topics on a real broker: which records are read, and errors if there are none."""

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.domain.key_shares import KeyShares
from fairlead.domain.record_sample import RecordSample
from fairlead.errors import TopicError
from fairlead.kafka import record_sample
from fairlead.kafka.record_sample import open_log
from fairlead.sandbox import Services
from fairlead.settings import Settings
from tests.conftest import KafkaTopic
from tests.fairlead.kafka.secured import Right, SecuredBroker
from tests.topics import create_topics
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

HOUR_S = 3600.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sampling take as long as it needs."""
    monkeypatch.setattr(record_sample, "MOST_S", PATIENCE_S)


def produce(services: Services, topic: str, keys: Sequence[bytes | None], **config: Any) -> None:
    """Write a record for each key, to the partition that Java's producer would choose."""
    servers = {"bootstrap.servers": services.bootstrap_servers}
    producer = Producer({**servers, "partitioner": "murmur2_random", **config})
    for key in keys:
        producer.produce(topic, b"value", key=key)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def sampled(settings: Settings, topic: str, records: int = 10_000) -> RecordSample:
    """Sample the records of the last hour."""
    with open_log(settings.kafka, topic) as log:
        return log.sample(log.window(HOUR_S), records)


def counts_of(sample: RecordSample) -> Counter[bytes | None]:
    """Return the number of records read for each key."""
    counts: Counter[bytes | None] = Counter()
    for row in sample.cells.to_pylist():
        counts[row["key"]] += row["count"]
    return counts


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_key_is_read_with_any_compression(
    settings: Settings, services: Services, kafka_topic: KafkaTopic, codec: str
) -> None:
    """A topic with fewer records than the limit is read completely, even records without a key."""
    topic = kafka_topic(partitions=3)
    keys: list[bytes | None] = [b"key-%d" % (number % 7) for number in range(700)]
    keys += [None] * 50
    produce(services, topic, keys, **{"compression.type": codec})
    sample = sampled(settings, topic)
    assert counts_of(sample) == Counter(keys)
    assert not sample.stopped
    assert KeyShares(sample).without_key == pytest.approx(50 / 750)


def test_aborted_records_and_markers_are_not_counted(
    settings: Settings, services: Services, kafka_topic: KafkaTopic
) -> None:
    """Only records of committed transactions are counted, up to the first open transaction."""
    topic = kafka_topic(partitions=1)
    producer = Producer(
        {
            "bootstrap.servers": services.bootstrap_servers,
            "transactional.id": topic,
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(PATIENCE_S)
    for end, key in (("commit", b"kept"), ("abort", b"gone"), ("commit", b"too"), ("", b"open")):
        producer.begin_transaction()
        for _ in range(20):
            producer.produce(topic, b"v", key=key)
        producer.flush(PATIENCE_S)
        if end:
            getattr(producer, f"{end}_transaction")(PATIENCE_S)
    sample = sampled(settings, topic)
    assert counts_of(sample) == {b"kept": 20, b"too": 20}
    assert KeyShares(sample).records.tolist() == [40.0]
    producer.abort_transaction(PATIENCE_S)


def test_compacted_log_has_fewer_records_than_offsets(
    settings: Settings, services: Services, kafka_topic: KafkaTopic
) -> None:
    """The estimate counts only records that compaction has left, including tombstones."""
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    topic = kafka_topic(partitions=1, config=config)
    produce(services, topic, [b"a", b"b"] * 200)
    time.sleep(0.2)  # clock: a segment is rolled by the next record after segment.ms
    produce(services, topic, [b"c"])
    producer = Producer({"bootstrap.servers": services.bootstrap_servers})
    producer.produce(topic, None, key=b"b")
    assert producer.flush(PATIENCE_S) == 0
    eventually(lambda: sum(counts_of(sampled(settings, topic)).values()) < 100, "it is compacted")
    sample = sampled(settings, topic)
    counts = counts_of(sample)
    assert set(counts) >= {b"b", b"c"}
    assert KeyShares(sample).records.sum() == sum(counts.values())


def test_limit_in_bytes_ends_sampling(
    settings: Settings, services: Services, kafka_topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sampling stops after the limit; each range of offsets in the sample is read completely."""
    topic = kafka_topic(partitions=2)
    keys: list[bytes | None] = [b"key-%d" % number for number in range(20_000)]
    produce(services, topic, keys, **{"batch.size": 4_096})
    monkeypatch.setattr(record_sample, "MOST_BYTES", 60_000)
    monkeypatch.setitem(record_sample._SETTINGS, "statistics.interval.ms", 1)  # noqa: SLF001 - else all is read before bytes are counted
    sample = sampled(settings, topic, records=20_000)
    assert sample.stopped
    assert 60_000 < sample.bytes < 600_000
    read = np.bincount(sample.cells["run"].to_numpy(), sample.cells["count"].to_numpy())
    assert read.tolist() == (sample.runs.stop - sample.runs.begin).ravel().tolist()


def test_retention_deletes_records_meanwhile(
    settings: Settings, services: Services, kafka_topic: KafkaTopic
) -> None:
    """If retention deletes records during sampling, only the remaining records are counted."""
    topic = kafka_topic(partitions=1)
    produce(services, topic, [b"old"] * 400 + [b"new"] * 400)
    admin = AdminClient({"bootstrap.servers": services.bootstrap_servers})
    with open_log(settings.kafka, topic) as log:
        window = log.window(HOUR_S)
        admin.delete_records([TopicPartition(topic, 0, 400)])[TopicPartition(topic, 0)].result()
        sample = log.sample(window)
    assert counts_of(sample) == {b"new": 400}


def test_sampling_commits_nothing_and_creates_no_group(
    settings: Settings, services: Services, kafka_topic: KafkaTopic
) -> None:
    """The broker does not list the sampling consumer's group id after sampling."""
    topic = kafka_topic(partitions=2)
    produce(services, topic, [b"a"] * 10)
    admin = AdminClient({"bootstrap.servers": services.bootstrap_servers})

    sampled(settings, topic)
    # Only this group is checked, since other tests create groups on this broker.
    groups = {each.group_id for each in admin.list_consumer_groups().result().valid}
    assert "fairlead" not in groups


@pytest.mark.parametrize("rights", [(), ("DESCRIBE",)])
def test_missing_right_is_named_with_its_remedy(
    secured: SecuredBroker, rights: tuple[str, ...]
) -> None:
    """The error says that READ is missing, both without any right and with DESCRIBE only."""
    user, topic = f"user-{uuid.uuid4().hex[:8]}", f"topic-{uuid.uuid4().hex[:8]}"
    secured.add_user(user)
    create_topics(secured.admin, NewTopic(topic, 1))
    producer = Producer({"bootstrap.servers": secured.open_servers})
    producer.produce(topic, b"v", key=b"k")
    assert producer.flush(PATIENCE_S) == 0
    if rights:
        secured.allow(user, Right("topic", topic, rights))
    with pytest.raises(TopicError, match=f"{topic}: no right to read it.*--operation Read"):
        sampled(Settings(kafka=secured.settings(user)), topic)


def test_missing_and_empty_topics_are_named(
    settings: Settings, kafka_topic: KafkaTopic, unique_name: str
) -> None:
    """The error names an empty topic, a missing one, and a name that Kafka does not allow."""
    empty = kafka_topic()
    with pytest.raises(
        TopicError, match=f"Topic {empty}: no record was written in the last 60 min"
    ):
        sampled(settings, empty)
    for name in (unique_name, "a/b"):
        with pytest.raises(TopicError, match=f"Topic {name} does not exist"):
            sampled(settings, name)
