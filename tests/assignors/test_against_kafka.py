"""Compare our assignors with Kafka's, run from its jars, on the same random problems."""

import base64
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from assignors.assignment import Assignment
from assignors.partitioner import murmur2
from assignors.problem import Int32, Member, Problem
from assignors.registry import assign
from assignors.user_data import UserData, decode, encode
from assignors.verifier import violations
from tests.assignors.conftest import Oracle, Share, owner_of
from tests.assignors.problems import (
    Members,
    Racks,
    Topics,
    random_members,
    random_racks,
    random_topics,
    spread,
    sticky_value,
)
from tests.lengths import form

pytestmark = pytest.mark.long

CHAINS = form(
    short={"ask_sticky": 60, "ask_cooperative": 20, "ask_uniform": 20},
    long={"ask_sticky": 300, "ask_cooperative": 300, "ask_uniform": 300},
)
ROUNDS = 5


def requests(
    topics: Topics, members: Members, replica_racks: Racks | None = None
) -> dict[str, object]:
    """Return a problem in the format that the oracle reads."""
    return {
        "replica_racks": replica_racks,
        "topics": topics,
        "members": {
            name: {
                "topics": list(member.topics),
                "owned": {topic: list(claims) for topic, claims in member.owned.items()},
                "generation": member.generation,
                "instance_id": member.instance_id,
                "rack": member.rack,
            }
            for name, member in members.items()
        },
    }


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_equals_kafka_partition_by_partition(oracle: Oracle, name: str, *, equal: bool) -> None:
    """Range and round robin give each partition to whom Kafka gives it, static members included."""
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
    oracle: Oracle, *, equal: bool
) -> None:
    """Racks are known to some members, equal for all partitions, or disjoint."""
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


def test_orders_names_as_java_does(oracle: Oracle) -> None:
    """Beyond the basic plane, Java's order of strings is not that of code points."""
    members = {name: Member(["t"]) for name in ("\U0001f600", "\uff5e", "z")}
    problem = Problem.of({"t": 4}, members)
    theirs = owner_of(problem, oracle.ask("range", **requests({"t": 4}, members)))
    assert np.array_equal(assign("range", problem).owner, theirs)


def ask_sticky(oracle: Oracle, topics: Topics, members: Members) -> Share:
    """Ask Kafka's StickyAssignor."""
    answer: Share = oracle.ask("sticky", **requests(topics, members))
    return answer


def ask_cooperative(oracle: Oracle, topics: Topics, members: Members) -> Share:
    """Ask the cooperative assignor until all that must be given up first has been taken."""
    problem, shares = Problem.of(topics, members), {}
    for generation in range(5, 15):
        shares = oracle.ask("cooperative", **requests(topics, members))
        if not violations(problem, Assignment(problem, owner_of(problem, shares))):
            break
        members = {
            name: replace(member, owned=shares[name], generation=generation)
            for name, member in members.items()
        }
    return shares


def ask_uniform(oracle: Oracle, topics: Topics, members: Members) -> Share:
    """Ask the broker's assignor of the new protocol, which takes no conflicting claims."""
    owner = Problem.of(topics, members).owner
    shares = rejoined(Problem.of(topics, members), members, owner)
    answer: Share = oracle.ask("uniform", **requests(topics, shares))
    return answer


def rejoined(problem: Problem, members: Members, owner: Int32, *, generation: int = 3) -> Members:
    """Let every member claim exactly what `owner` gives it."""
    claims: dict[str, dict[str, list[int]]] = {name: {} for name in members}
    for index in np.flatnonzero(owner >= 0).tolist():
        topic, partition = problem.partition_name(index)
        claims[problem.members[owner[index]]].setdefault(topic, []).append(partition)
    return {
        name: replace(member, owned=claims[name], generation=generation)
        for name, member in members.items()
    }


def change(rng: random.Random, topics: Topics, members: Members, *, equal: bool) -> None:
    """Let one thing happen to a group: join, leave, grow, drop, subscribe or claim falsely."""
    event = rng.choice(["join", "leave", "grow", "drop", "subscribe", "claim"])
    name = rng.choice(sorted(members))
    if event == "join":
        members[f"n{rng.randrange(10**6)}"] = Member(sorted(topics))
    elif event == "leave" and len(members) > 1:
        del members[name]
    elif event == "grow":
        topics[rng.choice(sorted(topics))] += rng.randint(1, 3)
    elif event == "drop" and len(topics) > 1:
        topics.pop(rng.choice(sorted(topics.keys() - {"t"})))
    elif event == "subscribe" and not equal:
        read = rng.sample(sorted(topics), rng.randint(1, len(topics)))
        members[name] = replace(members[name], topics=read)
    elif event == "claim":
        topic = rng.choice(sorted(topics))
        owned = {**members[name].owned, topic: list(range(topics[topic]))}
        members[name] = replace(members[name], owned=owned, generation=rng.choice([1, 3, 4]))


def as_kafka_can_take(rng: random.Random, topics: Topics, members: Members) -> Members:
    """Spare Kafka what it mistreats: members that read nothing, claims on deleted partitions."""
    filled = sorted(topic for topic, count in topics.items() if count)
    spared = {}
    for name, member in members.items():
        read = set(member.topics) & set(filled) or {rng.choice(filled)}
        owned = {
            topic: [partition for partition in claims if partition < topics[topic]]
            for topic, claims in member.owned.items()
            if topic in topics
        }
        spared[name] = replace(member, topics=sorted(read), owned=owned)
    return spared


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("ask", [ask_sticky, ask_cooperative, ask_uniform])
def test_is_never_worse_in_loads_kept_and_spread(
    oracle: Oracle,
    ask: Callable[[Oracle, Topics, Members], Share],
    *,
    equal: bool,
) -> None:
    """Over chains of rebalances, each from Kafka's answer.

    Kafka may give a member a partition of a topic that it no longer subscribes to.
    """
    chains, invalid = CHAINS[ask.__name__], 0
    for seed in range(chains):
        rng = random.Random(seed)
        topics = {"t": 1, **random_topics(rng, most=5, partitions=6)}
        members = random_members(rng, topics, most=5, equal=equal)
        for _ in range(ROUNDS):
            members = as_kafka_can_take(rng, topics, members)
            problem = Problem.of(topics, members)
            ours = assign("sticky", problem)
            assert not violations(problem, ours)
            theirs = owner_of(problem, ask(oracle, topics, members))
            if violations(problem, Assignment(problem, theirs)):
                invalid += 1
                theirs = ours.owner
            case = f"seed {seed}: {topics} {members}"
            assert aims(problem, ours.owner) <= aims(problem, theirs), case
            members = rejoined(problem, members, theirs)
            change(rng, topics, members, equal=equal)
    assert invalid < 0.02 * chains * ROUNDS


def aims(problem: Problem, owner: Int32) -> tuple[object, ...]:
    """Return the first three aims of `sticky`, less being better."""
    return (*sticky_value(problem, owner), *spread(problem, owner))


def test_hashes_keys_as_kafka_does(oracle: Oracle) -> None:
    """Murmur2 agrees bit for bit, for every remainder of the length and for bytes over 127."""
    rng = random.Random(0)
    keys = [rng.randbytes(length) for length in [*range(40), 1000, 1001, 1002, 1003] * 20]
    theirs = oracle.ask("murmur2", keys=[base64.b64encode(key).decode() for key in keys])
    assert [murmur2(key) for key in keys] == [value % 2**32 for value in theirs]


@pytest.mark.parametrize("owned", [{}, {"t": [0]}, {"t": [4, 0], "ü.topic": [7], "none": []}])
def test_kafka_reads_our_user_data(oracle: Oracle, owned: dict[str, list[int]]) -> None:
    """StickyAssignor decodes what we encode, in both versions."""
    for generation in (None, 7):
        data = encode(UserData(owned, generation))
        answer = oracle.ask("decode", data=base64.b64encode(data).decode())
        assert answer["owned"] == {t: sorted(p) for t, p in owned.items() if p}
        assert answer["generation"] == generation


@pytest.mark.parametrize("owned", [{"t": [0]}, {"t": [0, 4], "ü.topic": [7]}])
def test_we_read_kafkas_user_data(oracle: Oracle, owned: dict[str, list[int]]) -> None:
    """We decode what StickyAssignor encodes, and encode one topic to the same bytes."""
    data = base64.b64decode(oracle.ask("encode", owned=owned, generation=7))
    assert decode(data) == UserData(owned, 7)
    if len(owned) == 1:
        assert encode(decode(data)) == data
