"""Sticky on the cases that librdkafka and aiokafka hold theirs to."""

import numpy as np
import pytest

from assignors.problem import Member, Problem
from assignors.registry import assign
from assignors.verifier import violations
from tests.assignors.problems import kept
from tests.assignors.sticky_cases import CASES, Step

Owned = dict[str, list[int]]


@pytest.mark.parametrize("name", CASES)
def test_gives_what_others_test_for(name: str) -> None:
    """Each step gives what it has to, is balanced, and lets nobody swap partitions of a topic."""
    shares: dict[str, Owned] = {}
    for step in CASES[name]:
        problem = problem_of(step, shares)
        assignment = assign("sticky", problem)
        assert not violations(problem, assignment)
        shares = assignment.by_member()
        for member, expected in step.gives.items():
            share = shares[member]
            if isinstance(expected, int):
                assert sum(map(len, share.values())) == expected
            else:
                assert share == read(expected)
        assert_balanced(problem, shares)
        moved = int((problem.owner >= 0).sum()) - kept(problem, assignment.owner)
        assert step.moves in (None, moved)
        changed = (problem.owner >= 0) & (assignment.owner != problem.owner)
        moves = {
            (int(problem.topic_of[p]), int(problem.owner[p]), int(assignment.owner[p]))
            for p in np.flatnonzero(changed)
        }
        assert not any((topic, to, giver) in moves for topic, giver, to in moves)


def problem_of(step: Step, shares: dict[str, Owned]) -> Problem:
    """Let members claim what the step says, or else what they were given."""
    members = {}
    for name, topics in step.reads.items():
        claim, generation = step.claims.get(name, ("", 1))
        owned = read(claim) if name in step.claims else shares.get(name, {})
        members[name] = Member(topics.split(), owned, generation if owned else None)
    return Problem.of(step.topics, members)


def read(text: str) -> Owned:
    """Read `t:0,1 u:2`."""
    pairs = (share.split(":") for share in text.split())
    return {topic: [int(number) for number in numbers.split(",")] for topic, numbers in pairs}


def assert_balanced(problem: Problem, shares: dict[str, Owned]) -> None:
    """Hold what both suites call balanced: nobody with two more could give one to the other."""
    for heavy, more in shares.items():
        for light, less in shares.items():
            if sum(map(len, more.values())) - sum(map(len, less.values())) > 1:
                reader = problem.members.index(light)
                for topic in more:
                    readers = problem.subscribers_of(problem.topics.index(topic))
                    assert reader not in readers, f"{heavy} could give {light} some of {topic}"
