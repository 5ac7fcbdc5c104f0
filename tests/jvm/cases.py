"""Small random plans and groups with edge cases, for comparing the decisions of two languages.

Belongs here: making cases. Belongs elsewhere: assertions.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from fairlead.wire.document import MemberShare, PlanDocument

DAY = datetime(2026, 1, 1, tzinfo=UTC)
#: The last two names are ordered differently by code points and by UTF-16 units.
NAMES = ("a", "b", "c", "d", "e", "f", "aa", "A", "ä", "\ufb00", "\U0001f600")
TOPICS = ("t", "t0", "t1", "u", "ü", "\ufb01", "\U0001f601")


@dataclass(frozen=True)
class Case:
    """A plan, and the present group's subscriptions and partition counts."""

    plan: PlanDocument
    subscriptions: dict[str, list[str]]
    partition_counts: dict[str, int]


def draw_case(rng: random.Random) -> Case:
    """Return a random plan, and a group that differs from the plan in some respects."""
    topics = rng.sample(TOPICS, rng.randint(1, len(TOPICS)))
    planned = _counts(rng, topics)
    members = _group(rng, topics)
    present = _group(rng, [*topics, "absent"])
    if rng.random() < 0.7:  # use the plan's members, with a few changes
        present = {**members, **dict(list(present.items())[:2])}
        for name in rng.sample(sorted(present), min(len(present), rng.randint(0, 2))):
            del present[name]
    now = planned if rng.random() < 0.5 else {**planned, **_counts(rng, topics[:2])}
    weights = {t: _weights(rng, count) for t, count in planned.items() if rng.random() < 0.8}
    plan = PlanDocument(
        group="group",
        version=1,
        plan_id="plan",
        assignor="drawn",
        created_at=DAY,
        snapshot_at=DAY,
        partition_counts=planned,
        members=_shares(rng, members, planned),
        weights=weights,
    )
    absent = rng.choice([None, *topics])
    counts = {topic: count for topic, count in now.items() if topic != absent}
    return Case(plan, present, counts)


def _counts(rng: random.Random, topics: list[str]) -> dict[str, int]:
    return {topic: rng.choice([0, 1, 2, 3, 5, 8, 13]) for topic in topics}


def _group(rng: random.Random, topics: list[str]) -> dict[str, list[str]]:
    names = rng.sample(NAMES, rng.randint(0, len(NAMES)))
    if rng.random() < 0.5:
        return {name: list(topics) for name in names}
    return {name: rng.sample(topics, rng.randint(0, len(topics))) for name in names}


def _weights(rng: random.Random, count: int) -> npt.NDArray[np.float64]:
    kind = rng.choice(["whole", "few", "real", "huge"])
    draw: Callable[[], float] = {
        "whole": lambda: float(rng.randint(0, 100_000)),
        "few": lambda: rng.choice([0.0, 0.1, 0.2, 0.3]),  # sums depend on the order of addition
        "real": lambda: rng.random() * 10 ** rng.randint(-5, 5),
        "huge": lambda: rng.choice([1e308, 1e16, 1.0, 0.0]),
    }[kind]
    return np.array([draw() for _ in range(count)], dtype=np.float64)


def _shares(
    rng: random.Random, members: dict[str, list[str]], counts: dict[str, int]
) -> dict[str, MemberShare]:
    owned: dict[str, dict[str, list[int]]] = {name: {} for name in members}
    for topic, count in counts.items():
        readers = [name for name, topics in members.items() if topic in topics]
        for partition in range(count if readers else 0):
            if rng.random() < 0.9:  # leave out some partitions
                owned[rng.choice(readers)].setdefault(topic, []).append(partition)
    return {
        name: MemberShare(
            tuple(topics),
            {topic: np.array(numbers, np.int32) for topic, numbers in owned[name].items()},
        )
        for name, topics in members.items()
    }
