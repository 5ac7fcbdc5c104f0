"""The same decision everywhere: Java's `fit` against Python's, byte by byte."""

import json
import random
from collections.abc import Iterator

import pytest

from fairlead.wire.document import PlanDocument
from fairlead.wire.fit import fit
from tests.jvm.cases import Case, draw_case
from tests.jvm.conftest import Checks
from tests.lengths import form

CASES, BATCH = form(short=2000, long=100_000), 2000


def draw(seed: int) -> Iterator[Case]:
    """Draw a batch of cases."""
    rng = random.Random(seed)
    for _ in range(BATCH):
        yield draw_case(rng)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(CASES // BATCH))
def test_java_fits_plans_as_python_does(checks: Checks, seed: int) -> None:
    """Every share, its order included, over random plans and groups."""
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
