"""Java's `fit` returns exactly the same shares as Python's."""

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fairlead.wire.document import MemberShare, PlanDocument
from fairlead.wire.fit import fit
from tests.jvm.asking import Program
from tests.jvm.cases import DAY, NAMES, TOPICS, Case, draw_case
from tests.lengths import form

CASES, BATCH = form(short=2000, long=100_000), 2000


def draw(seed: int) -> Iterator[Case]:
    """Yield a batch of random cases."""
    rng = random.Random(seed)
    for at in range(BATCH):
        yield draw_alike(rng) if at % 20 == 0 else draw_case(rng)


def draw_alike(rng: random.Random) -> Case:
    """Return a random case in which `fit` must spread many partitions that the plan omits.

    Most of the weights are equal.
    """
    counts = {topic: rng.randint(0, 150) for topic in rng.sample(TOPICS, rng.randint(2, 6))}
    names = rng.sample(NAMES, rng.randint(2, 8))
    owned: dict[str, dict[str, npt.NDArray[np.int32]]] = {name: {} for name in names}
    for topic, count in counts.items():
        known = np.arange(rng.randint(0, count), dtype=np.int32)
        for piece in np.array_split(known, rng.randint(1, 3)):
            owned[rng.choice(names[:-1])].setdefault(topic, piece)
    weights = {
        topic: np.array([rng.choice([0.0, 0.0, 0.1]) for _ in range(count)])
        for topic, count in counts.items()
        if rng.random() < 0.5
    }
    at: dict[str, Any] = {"created_at": DAY, "snapshot_at": DAY, "partition_counts": counts}
    members = {name: MemberShare(tuple(counts), share) for name, share in owned.items()}
    plan = PlanDocument("group", 1, "plan", "drawn", members=members, weights=weights, **at)
    return Case(plan, {name: list(counts) for name in names}, counts)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(CASES // BATCH))
def test_fits_of_java_and_python_are_equal(checks: Program, seed: int) -> None:
    """For random plans and groups, both compute equal shares in the same order."""
    cases = list(draw(seed))
    questions = [
        {
            "ask": "fit",
            "plan": case.plan.to_bytes().decode(),
            "subscriptions": case.subscriptions,
            "counts": case.partition_counts,
        }
        for case in cases
    ]
    answers = checks.lines(questions)
    for case, question, answer in zip(cases, questions, answers, strict=True):
        plan = PlanDocument.from_bytes(case.plan.to_bytes())
        shares = fit(plan, case.subscriptions, case.partition_counts)
        assert answer == json.dumps(shares, separators=(",", ":")), question
