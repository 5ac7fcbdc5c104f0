"""`fairlead keys` on a real broker."""

import json

import psycopg
import pytest
from confluent_kafka import Producer
from sqlalchemy import Engine
from typer.testing import CliRunner, Result

from fairlead.sandbox import Services
from fairlead.surfaces.cli import app
from fairlead.surfaces.web.group import group_page
from tests.conftest import KafkaTopic
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.kafka

HOT = b"\x1b[31mhot<script>"


@pytest.fixture
def topic(services: Services, kafka_topic: KafkaTopic, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a topic of four partitions in which two thirds of the records have the same key."""
    monkeypatch.setattr("fairlead.kafka.record_sample.MOST_S", PATIENCE_S)
    name = kafka_topic(partitions=4)
    servers = {"bootstrap.servers": services.bootstrap_servers}
    producer = Producer({**servers, "partitioner": "murmur2_random"})
    for number in range(3_000):
        key = b"key-%d" % number if number % 3 == 0 else HOT
        producer.produce(name, b"value", key=key)
    producer.produce(name, b"value", key=b"\xff\x00")
    producer.produce(name, b"value")
    assert producer.flush(PATIENCE_S) == 0
    return name


def run(
    services: Services, *arguments: str, postgres: str = "postgresql://localhost:1/no"
) -> Result:
    """Run `fairlead keys` on the test run's broker."""
    env = {
        "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS": services.bootstrap_servers,
        "FAIRLEAD_POSTGRES__URL": postgres,
    }
    return CliRunner().invoke(app, ["keys", *arguments], env=env)


def test_giant_key_is_reported_by_its_hash(services: Services, topic: str) -> None:
    """The most frequent key is shown by its hash, as text and as JSON, without a database."""
    text = run(services, topic)
    assert text.exit_code == 0, text.output
    assert text.stdout.startswith("One key has 66.6 % of the records: more partitions cannot")
    document = run(services, topic, "--format", "json")
    for result in (text, document):
        assert "hot" not in result.stdout
        assert "9b8e8c5b23aa" in result.stdout
    found = json.loads(document.stdout)
    assert found["keys"][0]["share"] == pytest.approx(2_000 / 3_002)
    assert (found["sampled"], found["partitioner"]) == (3_002, "murmur2")
    assert [each["partitions"] for each in found["scenarios"]] == [4, 8]


def test_reports_of_one_partition_and_of_more_partitions(services: Services, topic: str) -> None:
    """`--partition` selects one partition's keys; `--to` sets the number of partitions."""
    found = json.loads(
        run(services, topic, "--to", "6", "--partition", "1", "--format", "json").stdout
    )
    assert [each["partitions"] for each in found["scenarios"]] == [4, 6]
    assert all(1 in key["partitions"] for key in found["keys"])


@pytest.mark.postgres
def test_hot_partition_is_shown_with_the_command(week: str, week_engine: Engine) -> None:
    """For a hot partition, `fairlead why` and the group's page show the `fairlead keys` command."""
    with psycopg.connect(week) as connection:
        connection.execute(
            "UPDATE fairlead_raw.group_diagnosis SET diagnosis = 'hot partition',"
            " names = ARRAY['orders-1'] WHERE group_id = 'orders' AND until IS NULL"
        )
    why = CliRunner().invoke(app, ["why", "orders"], env={"FAIRLEAD_POSTGRES__URL": week})
    command = "fairlead keys orders --group=orders --partition=1"
    assert f"its keys: `{command}`" in why.stdout
    assert f"<code>{command}</code>" in group_page(week_engine, "orders")
