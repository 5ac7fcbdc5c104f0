"""`fairlead survey` on a real broker, and the rows that it prints."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from fairlead.domain.candidate_rows import analyse_group
from fairlead.domain.policy import Policy
from fairlead.domain.samples.questions import Group
from fairlead.settings import Settings
from fairlead.surfaces.survey.finding import analysed_by, follows
from fairlead.surfaces.survey.page import as_lines, as_page
from tests.conftest import KafkaTopic
from tests.fixtures.consumer_groups import Commit, Join, Produce
from tests.programs import ended
from tests.samples import samples
from tests.waiting import PATIENCE_S

#: Runs the command, then prints which of the planner's dependencies were imported.
PROGRAM = """
import sys
from fairlead.surfaces.cli import main
try:
    main()
finally:
    roots = {name.partition(".")[0] for name in sys.modules}
    unwanted = {"sqlalchemy", "psycopg", "dagster", "pyspark", "rich", "matplotlib"}
    print("imported:", *sorted(roots & unwanted), file=sys.stderr)
"""


def survey(settings: Settings, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `fairlead survey` with a folder as working directory, for six samples."""
    options = ["--minutes", "0.02", "--every", "0.2", "--format", "json"]
    servers = ["--bootstrap-servers", settings.kafka.bootstrap_servers]
    return ended(sys.executable, "-c", PROGRAM, "survey", *options, *servers, cwd=folder)


@pytest.mark.kafka
def test_survey_needs_only_kafka(
    *,
    join: Join,
    produce: Produce,
    commit: Commit,
    kafka_topic: KafkaTopic,
    settings: Settings,
    unique_name: str,
    tmp_path: Path,
) -> None:
    """The survey shows owners, lag and a diagnosis.

    It imports no database client, and writes no files.
    """
    topic = kafka_topic(partitions=2)
    produce(topic, [5, 3])
    commit(unique_name, {(topic, 0): 1, (topic, 1): 3})
    join(unique_name, [topic], 2, [{"client.id": "a"}, {"client.id": "b"}])

    done = survey(settings, tmp_path)

    assert done.stderr.splitlines()[-1] == "imported:"
    assert f"{unique_name}: Stable" in done.stderr  # the first printed line
    answer = json.loads(done.stdout)
    (mine,) = (row for row in answer["groups"] if row["group"] == unique_name)
    assert (answer["samples"] >= 6, mine["diagnosis"] is not None) == (True, True)
    assert (mine["owners"], mine["lag"], mine["error"]) == ({"a": 1, "b": 1}, 4, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.kafka
def test_survey_recognises_lag_that_is_none(
    *,
    join: Join,
    produce: Produce,
    commit: Commit,
    kafka_topic: KafkaTopic,
    settings: Settings,
    unique_name: str,
    tmp_path: Path,
) -> None:
    """Deleted records, and records after an open transaction's start, are not lag.

    A topic that the group has left is listed separately; its deleted records are not lag, either.
    """
    busy, emptied, idle, held = (kafka_topic(partitions=1) for _ in range(4))
    for topic, count in ((busy, 9), (emptied, 99), (idle, 9), (held, 9)):
        produce(topic, [count])
    transactional = {"transactional.id": unique_name, "transaction.timeout.ms": 600_000}
    producer = Producer(settings.kafka.librdkafka(**transactional))
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(held, b"not committed", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    mine = flink, left, lost, latest, waits = [
        f"{unique_name}-{name}" for name in ("flink", "left", "lost", "latest", "waits")
    ]
    commit(flink, {(busy, 0): 2})
    commit(left, {(busy, 0): 5, (emptied, 0): 1})
    commit(lost, {(emptied, 0): 1})
    commit(waits, {(held, 0): 9})
    join(left, [busy], 1, [{}])
    join(lost, [emptied], 1, [{}])
    join(latest, [idle], 1, [{"auto.offset.reset": "latest"}])
    join(waits, [held], 1, [{}])
    admin = AdminClient(settings.kafka.librdkafka())
    for future in admin.delete_records([TopicPartition(emptied, 0, 98)]).values():
        future.result(PATIENCE_S)

    rows = {row["group"]: row for row in json.loads(survey(settings, tmp_path).stdout)["groups"]}

    figures = ("partitions", "lag", "uncommitted_lag", "lost")
    assert {name: [rows[name][key] for key in figures] for name in mine} == {
        flink: [1, 7, 0, 0],
        left: [1, 4, 0, 0],
        lost: [1, 1, 0, 97],
        latest: [1, 9, 9, 0],
        waits: [1, 0, 0, 0],
    }
    assert f"A transaction has been open on {held}-0 since before" in rows[waits]["evidence"]
    assert rows[left]["left"] == [{"topic": emptied, "partitions": 1, "lag": 1}]
    assert rows[lost]["lost_at"] <= rows[lost]["sampled_at"]
    assert [name for name in mine if rows[name]["not_planned"]] == [flink]


def row(**known: Any) -> dict[str, Any]:
    """Return the survey's row of a group, with the given fields replaced."""
    return {
        "group": "orders",
        "sampled_at": datetime(2026, 1, 2, tzinfo=UTC),
        "state": "Stable",
        "protocol": "range",
        "group_type": "classic",
        "members": 1,
        "partitions": 3,
        "owners": {"a": 3},
        "lag": 1200,
        "uncommitted": 0,
        "uncommitted_lag": 0,
        "lost": 0,
        "lost_at": None,
        "left": [],
        "not_planned": None,
        "clients": ["a"],
        "error": None,
        "follow": follows({"group_type": "classic", "protocol": "range"}, members=1),
        "diagnosis": "overloaded",
        "evidence": "All that arrives is more than all that its members can do. " * 3,
        "forecast_time_lag_s": 61.0,
        "catch_up_s": None,
        "loss_s": 7300.0,
        "gain": "nothing",
        "consumers": "It takes 3.",
        "reported": {},
    } | known


def sample(group: str, minute: int, **values: Any) -> dict[str, Any]:
    """Return a sample taken `minute` minutes after noon, of two topics named "left" and "read"."""
    return {
        "group": group,
        "at": datetime(2026, 1, 2, 12, minute, tzinfo=UTC),
        "topics": ["left", "read"],
        "counts": [1, 2],
        "members": ["m"],
        "owner": [-1, 0, 0],
        "subscriptions": [["read"]],
    } | values


@pytest.mark.parametrize("policies", [[], [Policy()]])
def test_idle_partition_without_a_commit_is_not_stuck(policies: list[Policy]) -> None:
    """The group is healthy if the partition without a commit has no arrivals."""
    series = [
        sample(
            "orders",
            minute,
            topics=["read"],
            counts=[2],
            owner=[0, 0],
            begin=[0, 0],
            end=[60 * minute, 5000],
            committed=[60 * minute - 3 * (minute > 0), -1],
        )
        for minute in range(10)
    ]
    observed, *_ = analyse_group(Group(samples(*series)), analysed_by("orders", policies))
    assert observed["diagnosis"] == "healthy", observed["evidence"]


@pytest.mark.parametrize("client", ["x" * 32_000, "x " * 16_000], ids=["word", "words"])
def test_long_client_id_is_cut(client: str) -> None:
    """A client id of 32,000 characters is shortened in the printed survey and on its HTML page."""
    rows = [row(owners={client: 3}, clients=[client], evidence=f"{client} is slow.")]
    text, page = "\n".join(as_lines(rows, [], 6, {})), as_page(rows, [], 6, {})
    assert max(text.count("x"), page.count("x")) < 10_000
    whole = " ".join(text.split())
    assert whole.count("(32,000 characters)") == 2
    assert "is slow." in whole
