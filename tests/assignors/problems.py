"""Random problems and slow, obvious solvers, shared by the tests of the assignors."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from assignors.assignment import Assignment
from assignors.metrics import member_lags
from assignors.problem import Int32, Member, Problem

LAGS = (0, 0, 1, 5, 20, 100)
Topics = dict[str, int]
Members = dict[str, Member]
Racks = dict[str, list[list[str]]]


def random_topics(rng: random.Random, *, most: int, partitions: int) -> Topics:
    """Return random partition counts for up to `most` topics. Some topics have no partitions."""
    return {f"t{n}": rng.randint(0, partitions) for n in range(rng.randint(1, most))}


def random_racks(rng: random.Random, topics: Topics) -> Racks:
    """Return random racks of each partition's replicas.

    Some topics have no racks; in some topics, all partitions have the same racks.
    """
    every = ("r0", "r1", "r2")
    racks = {}
    for topic in sorted(topics):
        drawn = rng.sample(every, rng.randint(0, 3))
        same = rng.random() < 0.2
        racks[topic] = [
            drawn if same else rng.sample(every, rng.randint(1, 2)) for _ in range(topics[topic])
        ]
    return racks


def random_members(rng: random.Random, topics: Topics, *, most: int, equal: bool) -> Members:
    """Return random members. Their owned partitions may overlap, be outdated, or not exist."""
    everything = sorted(topics)
    return {
        f"c{number}": Member(
            topics=everything if equal else rng.sample(everything, rng.randint(0, len(topics))),
            owned={
                topic: [p for p in range(topics[topic] + 1) if rng.random() < 0.4]
                for topic in everything
                if rng.random() < 0.7
            },
            generation=rng.choice([None, 1, 2]),
        )
        for number in range(rng.randint(1, most))
    }


def random_problem(
    seed: int, *, equal: bool = False, topics: int = 3, partitions: int = 3, members: int = 4
) -> Problem:
    """Return a random problem with at most these numbers of topics, partitions and members."""
    rng = random.Random(seed)
    counts = random_topics(rng, most=topics, partitions=partitions)
    lags = {topic: [rng.choice(LAGS) for _ in range(count)] for topic, count in counts.items()}
    return Problem.of(counts, random_members(rng, counts, most=members, equal=equal), lags)


def small_problems(count: int, *, largest: int = 800) -> Iterator[tuple[int, Problem]]:
    """Yield random problems with at most `largest` valid assignments, each with its seed."""
    for seed in range(count):
        problem = random_problem(seed, equal=seed % 4 == 0)
        readers = problem.subscriber_counts[problem.topic_of]
        if math.prod(np.maximum(readers, 1).tolist()) <= largest:
            yield seed, problem


def rejoin(problem: Problem, owner: Int32) -> Problem:
    """Return a copy of the problem in which each member owns what `owner` assigns to it."""
    return replace(problem, owner=owner)


def every_owner(problem: Problem) -> Iterator[Int32]:
    """Enumerate all valid assignments."""
    choices = [
        problem.subscribers_of(topic).tolist() or [-1] for topic in problem.topic_of.tolist()
    ]
    for combination in itertools.product(*choices):
        yield np.array(combination, dtype=np.int32)


def loads(problem: Problem, owner: Int32) -> list[int]:
    """Return the members' partition counts, descending. A smaller list means more even counts."""
    counts: list[int] = Assignment(problem, owner).counts.tolist()
    return sorted(counts, reverse=True)


def kept(problem: Problem, owner: Int32) -> int:
    """Return the number of partitions that stay with their owner."""
    return int(((owner == problem.owner) & (owner >= 0)).sum())


def sticky_value(problem: Problem, owner: Int32) -> tuple[list[int], int]:
    """Return two figures that `sticky` minimises first: `loads`, and the negated `kept`."""
    return loads(problem, owner), -kept(problem, owner)


def spread(problem: Problem, owner: Int32) -> tuple[Fraction, int, int]:
    """Return the third aim of `sticky`: three figures to minimise, the most important first.

    A share is the number of partitions of one topic that one member owns. The figures are the
    largest ratio of a share to the topic's even share, the negated number of shares, and the sum
    of squared shares.
    """
    shares = Counter(
        (topic, member)
        for topic, member in zip(problem.topic_of.tolist(), owner.tolist(), strict=True)
        if member >= 0
    )
    even = {
        topic: max(-(-int(problem.partition_counts[topic]) // int(readers)), 1)
        for topic, readers in enumerate(problem.subscriber_counts)
        if readers
    }
    worst = max((Fraction(size, even[topic]) for (topic, _), size in shares.items()), default=0)
    return Fraction(worst), -len(shares), sum(size**2 for size in shares.values())


def minus_returned(problem: Problem, owner: Int32) -> tuple[int, ...]:
    """Return the fourth aim of `sticky`: figures to minimise, the most important first.

    There is one figure for each earlier assignment, newest first: the negated number of partitions
    that have the same owner as in the earlier assignment.
    """
    rows = [] if problem.earlier is None else list(problem.earlier)
    return tuple(-int(((row == owner) & (owner >= 0)).sum()) for row in rows)


def far(problem: Problem, owner: Int32) -> int:
    """Return the last aim of `sticky`: the number of partitions read from another rack.

    A partition is ignored if the rack of its owner, or the racks of its replicas, are unknown.
    """
    if problem.rack_set_of is None:
        return 0
    replicas = [problem.rack_sets[number] for number in problem.rack_set_of.tolist()]
    racks = [problem.racks[member] if member >= 0 else None for member in owner.tolist()]
    return sum(
        bool(rack and held and rack not in held) for rack, held in zip(racks, replicas, strict=True)
    )


def in_racks(problem: Problem, seed: int) -> Problem:
    """Return a copy of the problem with random racks for all, some or no members and replicas."""
    rng = random.Random(seed)
    sets = (frozenset[str](), *map(frozenset, (["r0"], ["r1"], ["r0", "r1"], ["r2"])))
    choices: list[list[str | None]] = [[], ["r0", "r1"], ["r0", "r1"], ["r0", "r1", "r2", None]]
    known = rng.choice(choices)
    if not known:
        return problem
    return replace(
        problem,
        racks=tuple(rng.choice(known) for _ in problem.members),
        rack_sets=sets,
        rack_set_of=np.array(
            [rng.randrange(None in known, len(sets)) for _ in range(problem.partition_total)],
            dtype=np.int32,
        ),
    )


def heaviest_lag(problem: Problem, owner: Int32) -> int:
    """Return the lag of the most loaded member."""
    return max(member_lags(problem, owner), default=0)
