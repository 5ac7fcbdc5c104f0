"""Publication and adoption of plans for groups whose partitions a real broker assigns."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairlead.archive import SampleArchive
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.policy import Policy
from fairlead.domain.records import StoredPlan
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import KafkaSettings, Settings
from fairlead.store.plans import PlanStore
from fairlead.wire.document import MemberShare
from fairlead.workflows.adoption import observe
from fairlead.workflows.following import follow
from fairlead.workflows.planning_one_group import plan_group
from fairlead.workflows.reconciling import StepResult
from tests.fairlead.kafka.members import BrokerAssigned
from tests.fairlead.workflows.plans import run
from tests.fixtures.consumer_groups import Produce
from tests.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


@pytest.fixture
def cluster(settings: Settings, kafka_topic: Any) -> KafkaSettings:
    """Return the broker's settings, with plan and members topics that only this test uses."""
    compacted = {"cleanup.policy": "compact"}
    return settings.kafka.model_copy(
        update={
            "plan_topic": kafka_topic(config=compacted),
            "members_topic": kafka_topic(config=compacted),
        }
    )


@pytest.fixture
def plans(cluster: KafkaSettings) -> Iterator[PlanTopic]:
    """Return the plan topic."""
    with PlanTopic(cluster) as topic:
        yield topic


def draft_of(group: str, topic: str, shares: dict[str, list[int]], **more: Any) -> dict[str, Any]:
    """Return the arguments of a draft that gives these shares of a topic to members."""
    count = sum(map(len, shares.values()))
    return {
        "group": group,
        "members": {
            name: MemberShare((topic,), {topic: np.array(numbers, np.int32)})
            for name, numbers in shares.items()
        },
        "partition_counts": {topic: count},
        "weights": {topic: np.ones(count)},
        **more,
    }


def publish(store: PlanStore, group: str, gateway: KafkaGateway, plans: PlanTopic) -> StepResult:
    """Publish a group's approved plan as a planning run does; return the result."""
    (done,) = run(store, plans, gateway.live_groups, groups=[group], now=datetime.now(UTC))
    return done


def test_publication_reports_a_broker_without_the_plug_in(
    *,
    cluster: KafkaSettings,
    plans: PlanTopic,
    gateway: KafkaGateway,
    store: PlanStore,
    approve: Callable[..., StoredPlan],
    kafka_topic: Any,
    produce: Produce,
    tmp_path: Path,
    unique_name: str,
) -> None:
    """If a group uses an assignor other than `fairlead`, the result names the setting to change.

    The group has the consumer protocol. The adoption of its plan is measured nevertheless.
    """
    topic = kafka_topic(partitions=4)
    produce(topic, [9, 9, 1, 1])
    with BrokerAssigned(cluster) as members:
        for name in ("a", "b"):
            members.join(unique_name, name, [topic])

        def both_own_two() -> bool:
            return [len(share.get(topic, ())) for share in members.owned().values()] == [2, 2]

        eventually(both_own_two, "they share")
        eventually(
            lambda: gateway.broker_groups([unique_name])[unique_name].state == "Stable",
            "it settles",
        )
        seen = plan_group(
            gateway,
            SampleArchive(str(tmp_path)),
            unique_name,
            policies=(Policy(),),
            memory=GroupMemories(),
            now=datetime.now(UTC),
        )
        approve(**draft_of(unique_name, topic, {"a": [0, 2, 3], "b": [1]}))
        published = publish(store, unique_name, gateway, plans)
        in_force = store.in_state("published", groups=[unique_name])
        (followed,) = follow(gateway, cluster, [unique_name, "absent"], lambda _: in_force)
        (adopted,) = observe(in_force, gateway.live_groups, patiently=(), until=0.0)

    findings = seen.decision.findings
    assert findings is not None
    assert "the broker's assignor uniform follows no plans" in findings.evidence
    assert published.record is not None, published.reason
    assert (followed.version, followed.reached, followed.triggers) == (1, False, 0)
    assert "group.remote.assignor=fairlead" in followed.reason
    assert adopted.adoption is not None
    assert adopted.adoption.planned == 4
