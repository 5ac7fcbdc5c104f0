"""Looks at groups of the run's broker."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead.kafka.gateway import KafkaGateway
from fairlead.looks import taking
from fairlead.looks.archive import LookArchive
from fairlead.looks.taking import covered_groups, keep, take
from fairlead.policy import Discovery
from fairlead.settings import Settings
from tests.conftest import KafkaTopic
from tests.fairlead.kafka.conftest import (  # noqa: F401 - fixtures
    Commit,
    Join,
    Produce,
    commit,
    gateway,
    join,
    produce,
)

pytestmark = pytest.mark.kafka


def test_look_is_what_the_broker_says(
    *,
    gateway: KafkaGateway,  # noqa: F811
    join: Join,  # noqa: F811
    produce: Produce,  # noqa: F811
    commit: Commit,  # noqa: F811
    kafka_topic: KafkaTopic,
    settings: Settings,
    tmp_path: Path,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the groups that discovery covers, in portions, with what it cost."""
    monkeypatch.setattr(taking, "GROUPS_AT_ONCE", 1)
    topic = kafka_topic(partitions=2)
    mine, second = f"{unique_name}-a", f"{unique_name}-b"
    produce(topic, [5, 3])
    commit(mine, {(topic, 0): 4})
    join(mine, [topic], 2, [{"client.id": "only"}])
    for group in (second, f"{unique_name}-test"):
        join(group, [topic], 2, [{"client.id": "a"}, {"client.id": "b"}])
    current = settings.model_copy(
        update={"discovery": Discovery(include=(f"{unique_name}-*",), exclude=("*-test",))}
    )
    archive = LookArchive(str(tmp_path))

    taken = take(gateway, archive, current, covered_groups(gateway, current))

    now = datetime.now(UTC)
    one, other = archive.read(now - timedelta(minutes=5), now).to_pylist()
    assert (one["group"], other["group"]) == (mine, second)
    assert (one["topics"], one["end"], one["committed"]) == ([topic], [5, 3], [4, -1])
    assert (one["members"], one["owner"]) == (["only"], [0, 0])
    assert (other["members"], sorted(other["owner"])) == (["a", "b"], [0, 1])
    assert (taken.groups, taken.partitions) == (2, 4)
    assert archive.taken() == taken


def test_snapshot_of_a_planning_run_is_a_look(
    gateway: KafkaGateway,  # noqa: F811
    commit: Commit,  # noqa: F811
    kafka_topic: KafkaTopic,
    tmp_path: Path,
    unique_name: str,
) -> None:
    """The newest one, though it says nothing of what looking at all groups costs."""
    commit(unique_name, {(kafka_topic(), 0): 0})
    archive, snapshot = LookArchive(str(tmp_path)), gateway.snapshot([unique_name])
    keep(snapshot, archive)
    (row,) = archive.read(snapshot.snapshot_at, snapshot.snapshot_at).to_pylist()
    assert row["group"] == unique_name
    assert archive.taken() is None
