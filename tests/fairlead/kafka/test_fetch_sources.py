"""Racks that consumers fetch from, on three brokers in three racks."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from fairlead.archive import SampleArchive
from fairlead.domain.group_memories import GroupMemories
from fairlead.domain.policy import Policy
from fairlead.domain.records import PlanDraft
from fairlead.domain.samples import SAMPLES, by_partition, new_snapshot_id
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import KafkaSettings
from fairlead.workflows.planning_one_group import plan_group
from tests.cluster import QUIET_PROPERTIES, KafkaCluster
from tests.conftest import AWARE, RACKS
from tests.topics import create_topics
from tests.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.kafka

RECORDS, BYTES, TIMES = 1_000, 1_000, 20
#: For each topic, the broker ids of each partition's replicas; the leader is first.
PLACED: Final = {"led": [[1, 2], [2, 1], [3, 2]], "copied": [[2, 1], [2, 3], [3, 1]]}


@pytest.fixture(scope="module")
def kafka(three_brokers: KafkaCluster) -> KafkaSettings:
    """Return settings for three brokers with two topics."""
    servers = three_brokers.bootstrap_servers
    kafka = KafkaSettings(
        bootstrap_servers=servers, properties=QUIET_PROPERTIES, request_timeout_s=PATIENCE_S
    )
    admin = AdminClient(kafka.librdkafka())
    topics = [
        NewTopic(
            name,
            num_partitions=len(placed),
            replica_assignment=placed,  # type: ignore[arg-type] # the stubs say names; numbers it is
            config={"min.insync.replicas": "1"},
        )
        for name, placed in PLACED.items()
    ]
    create_topics(admin, *topics)
    eventually(lambda: _led(admin) == PLACED, "each partition has its leader")
    producer = Producer(kafka.librdkafka())
    for name, placed in PLACED.items():
        for partition in range(len(placed)):
            for _ in range(RECORDS):
                producer.produce(name, bytes(BYTES), partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    return kafka


def _led(admin: AdminClient) -> dict[str, list[list[int]]]:
    """Return the replicas of each partition, the leader first, from the brokers' metadata."""
    found = admin.list_topics().topics
    return {
        name: [
            [part.leader, *(replica for replica in part.replicas if replica != part.leader)]
            for _, part in sorted(found[name].partitions.items())
        ]
        for name in PLACED
        if name in found
    }


def joined(
    kafka: KafkaSettings, stack: ExitStack, group: str, racks: list[str | None]
) -> list[Consumer]:
    """Let a member in each of these racks join a group that reads both topics."""
    members = []
    for number, rack in enumerate(racks):
        own = {
            "group.id": group,
            "client.id": f"{group}-{number}",
            "partition.assignment.strategy": "roundrobin",
            "enable.auto.commit": False,
        }
        member = Consumer(kafka.librdkafka(**own, **({"client.rack": rack} if rack else {})))
        stack.callback(member.close)
        member.subscribe(list(PLACED))
        members.append(member)

    def settled() -> bool:
        for member in members:
            member.poll(0.1)
        owned = [len(member.assignment()) for member in members]
        return all(owned) and sum(owned) == sum(map(len, PLACED.values()))

    eventually(settled, "all members have partitions")
    admin = AdminClient(kafka.librdkafka())
    eventually(lambda: _led(admin) == PLACED, "each partition has its leader again")
    return members


def test_sample_has_racks_and_sizes_if_members_have_racks(kafka: KafkaSettings) -> None:
    """The sample has log sizes, and for each partition the racks from which members may fetch.

    These are the racks of all replicas if the leader allows it, otherwise only the leader's rack.
    """
    with ExitStack() as stack, KafkaGateway(kafka) as gateway:
        joined(kafka, stack, "named", ["r2", "r3"])
        joined(kafka, stack, "plain", [None])
        both = gateway.snapshot(["named", "plain"]).samples
        (plain,) = gateway.snapshot(["plain"]).samples.to_pylist()
    named, beside = both.to_pylist()
    rows = by_partition(both.slice(0, 1)).to_pylist()
    sources = {
        (row["topic"], row["partition"]): named["racks"][place]
        for row, place in zip(rows, named["rack_set"], strict=True)
    }
    expected = {
        (topic, number): sorted(
            RACKS[broker - 1] for broker in (placed if placed[0] in AWARE else placed[:1])
        )
        for topic, every in PLACED.items()
        for number, placed in enumerate(every)
    }
    assert sources == expected
    for row, size in zip(rows, named["log_bytes"], strict=True):
        assert BYTES <= size / (row["end"] - row["begin"]) <= 1.1 * BYTES
    assert (named["members"], named["member_racks"]) == (["named-0", "named-1"], ["r2", "r3"])
    assert beside["member_racks"] == plain["member_racks"] == [None]
    assert (plain["racks"], plain["rack_set"], plain["log_bytes"]) == (None, None, None)


def history(newest: pa.Table) -> pa.Table:
    """Return earlier samples a minute apart, with equal arrivals in each minute."""
    rows = []
    for back in range(1, TIMES):
        (row,) = newest.to_pylist()
        row["at"] -= back * timedelta(minutes=1)
        row["end"] = [offset - back * RECORDS // TIMES for offset in row["end"]]
        rows.append(row | {"committed": row["end"]})
    return pa.Table.from_pylist(rows[::-1], SAMPLES)


def test_a_healthy_group_gets_a_plan_without_rack_traffic(
    kafka: KafkaSettings, tmp_path: Path
) -> None:
    """Before the plan, all traffic of one topic crosses racks; with the plan, none does."""
    archive = SampleArchive(str(tmp_path))
    with ExitStack() as stack, KafkaGateway(kafka) as gateway:
        for member in joined(kafka, stack, "turned", ["r2", "r3", "r1"]):
            member.commit(
                offsets=[
                    TopicPartition(partition.topic, partition.partition, RECORDS)
                    for partition in member.assignment()
                ],
                asynchronous=False,
            )
        before = gateway.snapshot(["turned"]).samples
        archive.append(history(before), new_snapshot_id(before["at"][0].as_py()))
        planned = plan_group(
            gateway,
            archive,
            "turned",
            policies=[
                Policy.model_validate({"racks": {"price_per_gb": 2, "least_saving_per_day": 0}})
            ],
            memory=GroupMemories(),
            now=datetime.now(UTC),
        )
    draft = planned.decision
    assert isinstance(draft, PlanDraft), draft.reason
    assert draft.observed is not None
    crossed = len(PLACED["led"])
    gb_per_day = crossed * RECORDS / TIMES / 60 * BYTES * 86_400 / 1e9
    assert draft.observed["rack_gb_per_day"] == pytest.approx(gb_per_day, rel=0.2)
    assert draft.observed["rack_cost_per_day"] == pytest.approx(2 * gb_per_day, rel=0.2)
    assert draft.predicted["rack_gb_per_day"] == 0
    assert draft.moves.num_rows == crossed
    assert all(
        why.startswith("reduces cross-rack traffic") for why in draft.moves["reason"].to_pylist()
    )
