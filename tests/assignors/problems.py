"""Random problems and slow, obvious solvers, shared by the tests of the assignors."""

import itertools
import random
from collections.abc import Iterator

import numpy as np

from assignors.assignment import Assignment
from assignors.problem import Int32, Member, Problem


def random_members(
    rng: random.Random, topics: dict[str, int], *, most: int = 5, equal: bool = False
) -> dict[str, Member]:
    """Draw members whose claims may conflict, be stale, or name what no longer exists."""
    names = [f"c{number}" for number in range(rng.randint(1, most))]
    everything = sorted(topics)
    members = {}
    for name in names:
        read = everything if equal else rng.sample(everything, rng.randint(0, len(everything)))
        owned = {
            topic: [p for p in range(topics[topic] + 1) if rng.random() < 0.4]
            for topic in everything
            if rng.random() < 0.7
        }
        members[name] = Member(topics=read, owned=owned, generation=rng.choice([None, 1, 2]))
    return members


def random_problem(
    seed: int, *, equal: bool = False, most_topics: int = 3, most_partitions: int = 3, most: int = 4
) -> Problem:
    """Draw a small problem with lags."""
    rng = random.Random(seed)
    topics = {f"t{n}": rng.randint(0, most_partitions) for n in range(rng.randint(1, most_topics))}
    lags = {topic: [rng.choice([0, 1, 5, 20, 100]) for _ in range(n)] for topic, n in topics.items()}
    return Problem.of(topics, random_members(rng, topics, most=most, equal=equal), lags)


def rejoin(problem: Problem, owner: Int32) -> Problem:
    """Build the problem that arises when every member really owns what `owner` says."""
    return Problem(
        **{
            name: getattr(problem, name)
            for name in problem.__dataclass_fields__
            if name != "owner"
        },
        owner=owner,
    )


def every_owner(problem: Problem) -> Iterator[Int32]:
    """Enumerate all valid assignments."""
    choices = [
        problem.subscribers_of(topic).tolist() or [-1] for topic in problem.topic_of.tolist()
    ]
    for combination in itertools.product(*choices):
        yield np.array(combination, dtype=np.int32)


def sticky_value(problem: Problem, owner: Int32) -> tuple[list[int], int]:
    """What `sticky` minimises: loads in descending order, then minus what is kept."""
    loads = sorted(Assignment(problem, owner).counts.tolist(), reverse=True)
    return loads, -int(((owner == problem.owner) & (owner >= 0)).sum())
