"""The share of right diagnoses for random groups with known causes."""

import pytest

from benchmarks.random_scenarios import CAUSES, random_scenario
from benchmarks.scoring import mark, share_right
from tests.lengths import form


@pytest.mark.long
@pytest.mark.parametrize("plans", form(short=[True], long=[False, True]))
def test_diagnoses_of_random_groups_are_right(*, plans: bool) -> None:
    """At least 90 % of the diagnoses are right; one random group is made for each cause."""
    numbers = range(len(CAUSES))
    marks = [
        verdict for number in numbers for verdict in mark(random_scenario(number), plans=plans)
    ]
    assert {mark_of.cause for mark_of in marks} == set(CAUSES)
    assert share_right(marks)["all"] >= 0.9
