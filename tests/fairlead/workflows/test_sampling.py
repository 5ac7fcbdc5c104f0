"""Samples of groups on a real broker, with the resulting diagnoses and requests of plans."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from fairlead.archive import SampleArchive
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.question import Question
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.groups import GroupDescription, LiveMember, LogOffsets, TopicCommits
from fairlead.domain.policy import Discovery
from fairlead.domain.records import StoredPlan
from fairlead.domain.regression import Regression
from fairlead.domain.samples import new_snapshot_id, samples_of
from fairlead.domain.samples.questions import Group, PlanningOptions, question_about
from fairlead.errors import StoreUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import PostgresSettings, Settings
from fairlead.store.analysis_memory import standing_requests
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.surfaces.next_step import follows, next_step
from fairlead.workflows import diagnosing
from fairlead.workflows import sampling as taking
from fairlead.workflows.sampling import covered_groups, take
from tests.conftest import KafkaTopic
from tests.fixtures.consumer_groups import Commit, Join, Produce
from tests.recalled import CONSUMED, recall

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def age_plans_by_an_hour(engine: Engine) -> None:
    """Make all events of plans an hour older, so that the plans' effects can be measured."""
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text("UPDATE fairlead_raw.plan_event SET at = at - interval '1 hour'"))


def test_sample_agrees_with_the_broker(
    *,
    gateway: KafkaGateway,
    join: Join,
    produce: Produce,
    commit: Commit,
    kafka_topic: KafkaTopic,
    settings: Settings,
    tmp_path: Path,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sample has the broker's offsets and owners, even if groups are read one by one."""
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
    archive = SampleArchive(str(tmp_path))

    began = datetime.now(UTC)
    taken = take(gateway, archive, current, covered_groups(gateway, current)).taken

    first, other = archive.read(began, datetime.now(UTC)).to_pylist()
    assert (first["group"], other["group"]) == (mine, second)
    assert (first["topics"], first["end"], first["committed"]) == ([topic], [5, 3], [4, -1])
    assert (first["members"], first["owner"]) == (["only"], [0, 0])
    assert (other["members"], sorted(other["owner"])) == (["a", "b"], [0, 1])
    assert (taken.groups, taken.partitions) == (2, 4)
    assert archive.taken() == taken


@pytest.fixture
def group_with_lags(
    join: Join, produce: Produce, commit: Commit, kafka_topic: KafkaTopic, unique_name: str
) -> Callable[..., str]:
    """Return a function that makes a group of two members with these lags."""

    def make(*lags: int) -> str:
        topic = kafka_topic(partitions=len(lags))
        produce(topic, [CONSUMED + lag for lag in lags])
        commit(unique_name, {(topic, number): CONSUMED for number in range(len(lags))})
        join(unique_name, [topic], len(lags), [{"client.id": "one"}, {"client.id": "two"}])
        return unique_name

    return make


@pytest.mark.parametrize("lags", [(100, 80, 5, 5), (5, 5, 5, 5)])
def test_change_of_members_causes_a_plan_if_the_group_is_behind(
    *,
    lags: tuple[int, ...],
    gateway: KafkaGateway,
    group_with_lags: Callable[..., str],
    settings: Settings,
    tmp_path: Path,
    store: PlanStore,
    engine: Engine,
    publish: Callable[..., StoredPlan],
) -> None:
    """If a group is behind, new members cause a plan request; otherwise, they cause none."""
    group = group_with_lags(*lags)
    publish(group=group)
    age_plans_by_an_hour(engine)
    recall(settings.kafka, str(tmp_path), group)
    archive = SampleArchive(str(tmp_path))
    first = take(gateway, archive, settings, [group], store)
    again = take(gateway, archive, settings, [group], store)
    if lags == (5, 5, 5, 5):
        assert (first.requests, again.requests) == ({}, {})
        return
    request = first.requests[group]
    assert request.why.startswith(
        "since version 1: members that left: orders-1, orders-2; new members: one, two; "
    )
    assert "unbalanced: " in request.why
    assert archive.taken() == again.taken
    standing = standing_requests(store.engine, timedelta(hours=1))[group]
    assert standing.request == again.requests[group]
    assert standing.since < standing.at  # requested by the first sample, and again by the second
    nowhere = PostgresSettings(url=SecretStr("postgresql://nobody@127.0.0.1:1/none"))
    with pytest.raises(StoreUnavailableError):
        take(gateway, archive, settings, [group], PlanStore(create_store_engine(nowhere)))
    assert standing_requests(store.engine, timedelta(hours=1))[group] == standing


def test_suspected_regression_stops_plans(
    *,
    gateway: KafkaGateway,
    group_with_lags: Callable[..., str],
    settings: Settings,
    tmp_path: Path,
    store: PlanStore,
    engine: Engine,
    publish: Callable[..., StoredPlan],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a regression is suspected, no new plan is requested.

    If the suspected plan is a rollback, a new plan is requested.
    """
    doubt = Regression("late", np.zeros(4, np.int32))
    monkeypatch.setattr(diagnosing, "find_regression", lambda _: doubt)
    group = group_with_lags(100, 80, 5, 5)
    for snapshot_id in ("s1", "s2"):
        publish(snapshot_id, group=group)
    age_plans_by_an_hour(engine)
    recall(settings.kafka, str(tmp_path), group)
    archive = SampleArchive(str(tmp_path))
    assert take(gateway, archive, settings, [group], store).requests == {}
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(
            text("UPDATE fairlead_raw.plan SET rolled_back_from = 1 WHERE version = 2")
        )
    assert list(take(gateway, archive, settings, [group], store).requests) == [group]


def three_groups(at: datetime, without_members: Sequence[str] = ()) -> pa.Table:
    """Return a sample of groups a, b and c, each of which reads a topic with one partition."""
    names, partition = ("a", "b", "c"), np.array([0], np.int32)

    def described(name: str) -> GroupDescription:
        member = LiveMember("id", "one", None, "one", (name,), {name: (0,)}, None)
        if name in without_members:
            return GroupDescription(name, "Empty", "", ())
        return GroupDescription(name, "Stable", "range", (member,))

    return samples_of(
        sample_id=new_snapshot_id(at),
        at=at,
        descriptions={name: described(name) for name in names},
        committed={name: {name: TopicCommits(partition, np.array([5]), [b""])} for name in names},
        log=LogOffsets(
            starts={name: number for number, name in enumerate(names)},
            counts=dict.fromkeys(names, 1),
            begin=np.zeros(3, np.int64),
            end=np.full(3, 9),
            unreadable={},
        ),
    )


def test_unexpected_error_affects_one_diagnosis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the diagnosis of one group fails, the error is logged and the others are diagnosed."""

    def failing(group: Group, planning: PlanningOptions) -> Question:
        if group.name == "b":
            raise IndexError("an unforeseen layout")
        return question_about(group, planning)

    monkeypatch.setattr(diagnosing, "question_about", failing)
    seen = three_groups(datetime.now(UTC))
    found = diagnosing.diagnose(SampleArchive(str(tmp_path)), [seen], [], GroupMemories()).findings
    assert sorted(found) == ["a", "c"]
    assert "group b: not diagnosed" in caplog.text
    assert "an unforeseen layout" in caplog.text


def test_group_without_members_is_unknown(tmp_path: Path) -> None:
    """If a group has no members, its costs stay stored, and the advice is to start consumers."""
    at = datetime.now(UTC)
    seen = three_groups(at, without_members=("a", "b"))
    costs = {"t": {"0": [8.0, 0.1, at.timestamp()]}}
    remembered = GroupMemories(
        {"a": {"one": Capacity(9.0, measured=True, at=at.timestamp())}}, costs={"a": costs}
    )
    archive = SampleArchive(str(tmp_path))
    found = diagnosing.diagnose(archive, [seen], [], remembered).findings
    assert sorted(found) == ["a", "c"]
    _, findings = found["a"]
    assert (findings.diagnosis, findings.evidence) == ("unknown", "The group has no members.")
    assert findings.remembered_costs == costs
    row = {"group": "a", "waiting_state": None, "frozen": None, "published": 1, "adherence": 0.0}
    row |= {"diagnosis": findings.diagnosis, "evidence": findings.evidence}
    assert (follows(row), next_step(row, (), ())) == ("no members", "start its consumers")
