"""The sandbox as a whole, on real services."""

from collections.abc import Callable

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from fairlead.sandbox import Services


@pytest.mark.kafka
def test_kafka_answers(services: Services, kafka_topic: Callable[..., str]) -> None:
    """A topic can be made on the embedded broker."""
    topic = kafka_topic(partitions=3)
    admin = AdminClient({"bootstrap.servers": services.bootstrap_servers})
    assert len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 3


@pytest.mark.postgres
def test_postgres_answers(database: str) -> None:
    """A fresh database is empty."""
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert rows == []


@pytest.mark.spark
def test_spark_answers(spark: SparkSession) -> None:
    """The session runs a job."""
    assert spark.range(3).count() == 3
