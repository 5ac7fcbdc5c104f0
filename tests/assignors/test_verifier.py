"""The verifier finds each kind of violation."""

import numpy as np
import pytest

from assignors.assignment import Assignment
from assignors.problem import Problem
from assignors.verifier import violations

PROBLEM = Problem.of({"t": 2, "u": 1, "v": 1}, {"a": ["t"], "b": ["t", "u"]})


@pytest.mark.parametrize(
    ("owner", "found"),
    [
        ([0, 1, 1, -1], []),
        ([0, 1, 1], ["3 owners for 4 partitions"]),
        ([0, -1, 1, -1], ["1 partitions have no owner: t-1"]),
        ([0, 2, 1, -1], ["1 partitions go to a member that does not exist: t-1"]),
        ([0, -2, 1, -1], ["1 partitions go to a member that does not exist: t-1"]),
        ([0, 1, 0, -1], ["1 partitions go to a member that does not subscribe: u-0"]),
        ([0, 1, 1, 0], ["1 partitions go to a member that does not subscribe: v-0"]),
    ],
)
def test_finds_each_violation(owner: list[int], found: list[str]) -> None:
    """The message about a violation names the broken rule and the partition."""
    assert violations(PROBLEM, Assignment(PROBLEM, np.array(owner, np.int32))) == found


def test_lists_at_most_five_partitions() -> None:
    problem = Problem.of({"t": 1000}, {"a": ["t"]})
    (message,) = violations(problem, Assignment(problem, np.full(1000, -1, np.int32)))
    assert message == "1000 partitions have no owner: t-0, t-1, t-2, t-3, t-4, ..."
