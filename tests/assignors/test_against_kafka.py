"""Compare our assignors with Kafka's, which run in Java, on the same random problems."""

import base64
import random
from dataclasses import replace

import numpy as np
import pytest

from assignors.partitioner import murmur2
from assignors.problem import Member, Problem
from assignors.registry import assign
from assignors.user_data import UserData, decode, encode
from tests.assignors.conftest import owner_of
from tests.assignors.problems import (
    Members,
    Racks,
    Topics,
    random_members,
    random_racks,
    random_topics,
)
from tests.jvm.asking import Program
from tests.lengths import form

pytestmark = pytest.mark.long


def requests(
    topics: Topics, members: Members, replica_racks: Racks | None = None
) -> dict[str, object]:
    """Return a problem in the format that Oracle.java reads."""
    return {
        "replica_racks": replica_racks,
        "topics": topics,
        "members": {
            name: {
                "topics": list(member.topics),
                "instance_id": member.instance_id,
                "rack": member.rack,
            }
            for name, member in members.items()
        },
    }


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_equals_kafka_partition_by_partition(oracle: Program, name: str, *, equal: bool) -> None:
    """Our `range` and round robin choose the same owners as Kafka, also for static members."""
    for seed in range(150):
        rng = random.Random(seed)
        topics = random_topics(rng, most=5, partitions=7)
        members = {
            member: replace(value, owned={}, instance_id=rng.choice([None, f"i{rng.random()}"]))
            for member, value in random_members(rng, topics, most=6, equal=equal).items()
        }
        problem = Problem.of(topics, members)
        theirs = owner_of(problem, oracle.ask(name, **requests(topics, members)))
        assert np.array_equal(assign(name, problem).owner, theirs), f"seed {seed}"


@pytest.mark.parametrize("equal", [True, False])
def test_range_with_racks_equals_kafka_partition_by_partition(
    oracle: Program, *, equal: bool
) -> None:
    """Our `range` chooses the same owners as Kafka, even if only some members have racks."""
    differs = 0
    for seed in range(form(short=300, long=3000)):
        rng = random.Random(seed)
        topics = random_topics(rng, most=5, partitions=9)
        members = {
            member: replace(
                value,
                owned={},
                instance_id=rng.choice([None, f"i{rng.random()}"]),
                rack=rng.choice([None, "r0", "r1", "r2", "r3"]),
            )
            for member, value in random_members(rng, topics, most=6, equal=equal).items()
        }
        racks = random_racks(rng, topics)
        problem = Problem.of(topics, members, replica_racks=racks)
        theirs = owner_of(problem, oracle.ask("range", **requests(topics, members, racks)))
        ours = assign("range", problem).owner
        assert np.array_equal(ours, theirs), f"seed {seed}"
        differs += not np.array_equal(ours, assign("range", Problem.of(topics, members)).owner)
    assert differs > 50


def test_orders_names_as_java_does(oracle: Program) -> None:
    """Members are sorted by UTF-16 units, as in Java. Their order by code points would differ."""
    members = {name: Member(["t"]) for name in ("\U0001f600", "\uff5e", "z")}
    problem = Problem.of({"t": 4}, members)
    theirs = owner_of(problem, oracle.ask("range", **requests({"t": 4}, members)))
    assert np.array_equal(assign("range", problem).owner, theirs)


def test_hashes_keys_as_kafka_does(oracle: Program) -> None:
    """Our murmur2 equals Kafka's for keys of any length and with bytes over 127."""
    rng = random.Random(0)
    keys = [rng.randbytes(length) for length in [*range(40), 1000, 1001, 1002, 1003] * 20]
    theirs = oracle.ask("murmur2", keys=[base64.b64encode(key).decode() for key in keys])
    assert [murmur2(key) for key in keys] == [value % 2**32 for value in theirs]


@pytest.mark.parametrize("owned", [{}, {"t": [0]}, {"t": [4, 0], "ü.topic": [7], "none": []}])
def test_kafka_reads_our_user_data(oracle: Program, owned: dict[str, list[int]]) -> None:
    """Kafka's StickyAssignor decodes our user data, with and without a generation."""
    for generation in (None, 7):
        data = encode(UserData(owned, generation))
        answer = oracle.ask("decode", data=base64.b64encode(data).decode())
        assert answer["owned"] == {t: sorted(p) for t, p in owned.items() if p}
        assert answer["generation"] == generation


@pytest.mark.parametrize("owned", [{"t": [0]}, {"t": [0, 4], "ü.topic": [7]}])
def test_we_read_kafkas_user_data(oracle: Program, owned: dict[str, list[int]]) -> None:
    """We decode user data of Kafka's StickyAssignor. For one topic, our encoding is identical."""
    data = base64.b64decode(oracle.ask("encode", owned=owned, generation=7))
    assert decode(data) == UserData(owned, 7)
    if len(owned) == 1:
        assert encode(decode(data)) == data
