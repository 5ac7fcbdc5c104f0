"""Lag compared with Kafka's own consumer-group tool, on a real broker."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from fairlead.spark.lag import write_lag
from fairlead.spark.warehouse import Warehouse
from tests.fixtures.consumer_groups import commit_offsets
from tests.kafka_tools import run_kafka_tool
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def lag_by_kafka(settings: Settings, group: str) -> dict[int, str]:
    """Return the column LAG of each partition in the tool's output; `-` if unknown."""
    output = run_kafka_tool(
        TOOL,
        *("--bootstrap-server", settings.kafka.bootstrap_servers),
        *("--describe", "--group", group, "--timeout", str(round(1_000 * PATIENCE_S))),
    )
    header, *rows = [line.split() for line in output.splitlines() if line.strip()][-6:]
    partition, lag = header.index("PARTITION"), header.index("LAG")
    return {int(row[partition]): row[lag] for row in rows if row[0] == group}


def test_lag_equals_the_column_of_kafkas_tool(
    settings: Settings, spark: SparkSession, kafka_topic: Any, unique_name: str, tmp_path: Path
) -> None:
    """Lags are equal, but Kafka's tool also counts records deleted before they were read.

    The topic is compacted and keys repeat, so offsets outnumber records. For partitions
    without a commit, Kafka's tool shows no lag, and Fairlead computes lag as in KAFKA-5337.
    """
    topic = kafka_topic(partitions=5, config={"cleanup.policy": "compact,delete"})
    producer = Producer(settings.kafka.librdkafka())
    for partition, count in enumerate([50, 40, 30, 20, 10]):
        for number in range(count):
            producer.produce(topic, b"record", key=str(number % 3), partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    offsets = {(topic, 0): 20, (topic, 1): 40, (topic, 2): 5}
    commit_offsets(settings.kafka.librdkafka(), unique_name, offsets)
    # Delete records of partition 2, beyond its commit, and of partition 3, which has no commit.
    admin = AdminClient(settings.kafka.librdkafka())
    cut = [TopicPartition(topic, 2, 10), TopicPartition(topic, 3, 15)]
    for future in admin.delete_records(cut).values():
        future.result(PATIENCE_S)

    with KafkaGateway(settings.kafka) as gateway:
        snapshot = gateway.snapshot([unique_name])
    warehouse = Warehouse(str(tmp_path))
    warehouse.write_snapshot(snapshot, {})

    def measured(policy: str) -> dict[int, tuple[int, str]]:
        latest = {unique_name} if policy == "latest" else ()
        write_lag(spark, warehouse, snapshot.snapshot_id, latest)
        rows = warehouse.load("lag", snapshot.snapshot_id).to_pylist()
        return {row["partition"]: (row["lag"], row["status"]) for row in rows}

    earliest, latest = measured("earliest"), measured("latest")
    assert earliest == {
        0: (30, "OK"),
        1: (0, "OK"),
        2: (20, "DATA_LOSS"),
        3: (5, "OK"),
        4: (10, "OK"),
    }
    assert {p: latest[p][0] for p in latest} == {0: 30, 1: 0, 2: 20, 3: 0, 4: 0}
    by_kafka = lag_by_kafka(settings, unique_name)
    lost = 5  # Kafka's tool counts records that were deleted before they were read
    assert {p: int(lag) for p, lag in by_kafka.items() if lag != "-"} == {
        0: earliest[0][0],
        1: earliest[1][0],
        2: earliest[2][0] + lost,
    }
