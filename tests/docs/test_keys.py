"""The example of docs/keys.md is the output of the command for a real broker."""

import os
import re
import time

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from fairlead.sandbox import Services
from fairlead.surfaces.cli import app
from tests.conftest import KafkaTopic
from tests.docs.blocks import ROOT, blocks
from tests.waiting import PATIENCE_S

PAGE = ROOT / "docs/keys.md"
#: Key -> number of records. One customer has nearly a third of all records.
RECORDS = {b"customer-7": 18_000} | {b"customer-%d" % number: 42 for number in range(100, 1_100)}


@pytest.mark.kafka
@pytest.mark.postgres
def test_example_is_what_the_command_prints(
    services: Services, kafka_topic: KafkaTopic, week: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows the command's output; only the numbers of MB and seconds may differ.

    WRITE_KEYS_PAGE=1 updates the page.
    """
    monkeypatch.setattr("fairlead.kafka.record_sample.MOST_S", PATIENCE_S)
    topic = kafka_topic("orders", partitions=6)
    servers = {"bootstrap.servers": services.bootstrap_servers}
    producer = Producer({**servers, "partitioner": "murmur2_random"})
    # clock: the command reads records of the last minute; sending them may take longer.
    later = int((time.time() + 1_800) * 1_000)
    for key, count in RECORDS.items():
        for _ in range(count):
            producer.produce(topic, b"an order", key=key, timestamp=later)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    command, output = list(blocks(PAGE.read_text()))[:2]
    result = CliRunner().invoke(
        app,
        command.code.split()[1:],
        env={
            "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS": services.bootstrap_servers,
            "FAIRLEAD_POSTGRES__URL": week,
            "FAIRLEAD_CONFIG": str(ROOT / "tests/docs/fairlead.toml"),
        },
    )
    assert result.exit_code == 0, repr(result.exception)
    printed = "".join(f"{line.rstrip()}\n" for line in result.stdout.splitlines())
    if os.environ.get("WRITE_KEYS_PAGE"):
        page = PAGE.read_text()
        PAGE.write_text(page.replace(f"```text\n{output.code}```", f"```text\n{printed}```"))
    else:
        assert _without_cost(printed) == _without_cost(output.code)


def _without_cost(text: str) -> str:
    return re.sub(r"[\d,]+ MB in \d+ s", "", " ".join(text.split()))
