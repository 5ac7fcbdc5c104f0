"""Conversion of a plan to an assignment problem."""

from assignors.verifier import violations
from fairlead.domain.as_problem import assignment_of, planned, problem_of
from tests.fairlead.workflows.plans import make_plan

PLAN = make_plan(
    {"a": {"t": [0, 2]}, "b": {"t": [1], "u": [0]}}, {"t": [30.0, 20.0, 10.0], "u": [5.0]}
)


def test_plan_is_a_valid_solution_of_its_problem() -> None:
    problem = problem_of(PLAN, planned(PLAN))
    assignment = assignment_of(problem, planned(PLAN))
    assert violations(problem, assignment) == []
    assert assignment.by_member() == {"a": {"t": [0, 2]}, "b": {"t": [1], "u": [0]}}


def test_member_that_the_plan_does_not_know_is_part_of_the_problem() -> None:
    """A member that the plan does not name keeps its partitions."""
    owned = {"a": {"t": [0]}, "new": {"t": [1, 2], "u": [0]}}
    problem = problem_of(PLAN, owned)
    assert problem.members == ("a", "b", "new")
    assert assignment_of(problem, owned).by_member()["new"] == {"t": [1, 2], "u": [0]}


def test_topics_and_partitions_that_the_plan_does_not_count_are_left_out() -> None:
    owned = {"a": {"t": [0, 7], "unplanned": [0]}}
    assignment = assignment_of(problem_of(PLAN, owned), owned)
    assert assignment.by_member()["a"] == {"t": [0]}
