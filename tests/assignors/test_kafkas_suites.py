"""Kafka's own suites of its assignors, run on ours through `fairlead assign`."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assignors.problem import Int32, Member, Problem
from assignors.racks import in_replica_rack
from assignors.registry import assign
from fairlead.sandbox.java import BRIEF, find_java
from tests.assignors.conftest import Oracle, owner_of
from tests.assignors.problems import not_back, spread, sticky_value
from tests.assignors.suite_jars import suite_classpath
from tests.lengths import form

pytestmark = pytest.mark.long

# Hundreds of thousands of partitions, or hundreds of random groups: `make test-long`.
LONG = (
    "testLargeAssignmentAndGroupWithUniformSubscription",
    "testLargeAssignmentAndGroupWithNonEqualSubscription",
    "testAssignmentAndGroupWithNonEqualSubscriptionNotTimeout",
    "testLargeAssignmentWithMultipleConsumersLeavingAndRandomSubscription",
    "testReassignmentWithRandomSubscriptionsAndChanges",
)
WHICH_ONE_MOVES = (
    "an equal optimum: one partition of topic2 moves to the third consumer, here the second "
    "consumer's, as in the third example of KIP-54, there the first's"
)
ORDER_OF_A_LIST = "the order of new partitions within a list, which says nothing; the same share"
RACKS_COME_LAST = (
    "Kafka gives up kept partitions and spread for racks; here racks decide between equals alone"
)
# Of the server's assignor.
NAMED_ALL_THE_SAME = "a member that reads nothing stands in the answer, with nothing"
ABSENT_TOPICS = "a topic that does not exist (yet) is no error: what there is is assigned"
ANOTHER_PLACEMENT = "the test names one of several placements: which of equal members or partitions"
STICKY = {
    "testMaxQuotaConsumerMoreThanNumExpectedMaxCapacityMembers": WHICH_ONE_MOVES,
    "testAddRemoveTwoConsumersTwoTopics": ORDER_OF_A_LIST,
}
EXPECTED: dict[str, dict[str, str]] = {
    "RangeAssignorTest": {},
    "RoundRobinAssignorTest": {},
    "StickyAssignorTest": STICKY,
    "CooperativeStickyAssignorTest": {
        **STICKY,
        "testRackAwareAssignmentWithUniformSubscription": RACKS_COME_LAST,
        "testRackAwareAssignmentWithNonEqualSubscription": RACKS_COME_LAST,
        "testUniformSubscriptionTransferOwnershipListIsRight": RACKS_COME_LAST,
    },
    "UniformHomogeneousAssignmentBuilderTest": {
        "testOneMemberNoTopicSubscription": NAMED_ALL_THE_SAME,
        "testOneMemberSubscribedToNonexistentTopic": ABSENT_TOPICS,
        **dict.fromkeys(
            (
                "testFirstAssignmentTwoMembersTwoTopicsNoMemberRacks",
                "testFirstAssignmentNumMembersGreaterThanTotalNumPartitions",
                "testReassignmentWhenPartitionsAreAddedForTwoMembersTwoTopics",
                "testReassignmentWhenOneMemberAddedAfterInitialAssignmentWithTwoMembersTwoTopics",
                "testReassignmentWhenOneMemberRemovedAfterInitialAssignmentWithThreeMembersTwoTopics",
            ),
            ANOTHER_PLACEMENT,
        ),
    },
    "UniformHeterogeneousAssignmentBuilderTest": {
        "testTwoMembersNoTopicSubscription": NAMED_ALL_THE_SAME,
        "testTwoMembersSubscribedToNonexistentTopics": ABSENT_TOPICS,
        **dict.fromkeys(
            (
                "testFirstAssignmentTwoMembersTwoTopics",
                "testFirstAssignmentNumMembersGreaterThanTotalNumPartitions",
                "testReassignmentForTwoMembersThreeTopicsGivenUnbalancedPrevAssignment",
                "testReassignmentWhenPartitionsAreAddedForTwoMembers",
                "testReassignmentWhenOneMemberAddedAndPartitionsAddedTwoMembersTwoTopics",
                "testReassignmentWhenTopicPartitionsRunOutAndMembersHaveNoPartitions",
            ),
            ANOTHER_PLACEMENT,
        ),
    },
}
# Tests of each suite, with and without the long ones: none may be lost.
TESTS = {
    "RangeAssignorTest": (44, 44),
    "RoundRobinAssignorTest": (13, 13),
    "StickyAssignorTest": (141, 130),
    "CooperativeStickyAssignorTest": (122, 111),
    "UniformHomogeneousAssignmentBuilderTest": (14, 14),
    "UniformHeterogeneousAssignmentBuilderTest": (15, 15),
}


@dataclass(frozen=True)
class Result:
    """One test: its failure, if any, and its last question."""

    method: str
    wrong: str | None
    question: dict[str, Any] | None


@pytest.fixture(scope="module")
def results() -> dict[str, list[Result]]:
    """Run all suites in one Java process: for each, its tests."""
    left_out = form(short=LONG, long=())
    classpath = os.pathsep.join(map(str, suite_classpath()))
    run = subprocess.run(
        [
            *(str(find_java()), *BRIEF, "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"),
            *("-cp", classpath, str(Path(__file__).with_name("Suites.java"))),
            *(str(Path(sys.executable).with_name("fairlead")), *left_out),
        ],
        stdout=subprocess.PIPE,
        text=True,
        timeout=1800,
        check=True,
    )
    found = defaultdict(list)
    for line in run.stdout.splitlines():
        result = json.loads(line)
        found[result["suite"]].append(
            Result(result["method"], result["wrong"], result.get("question"))
        )
    return found


@pytest.mark.parametrize("suite", EXPECTED)
def test_passes_all_but_what_is_listed(suite: str, results: dict[str, list[Result]]) -> None:
    """Exactly the tests listed fail, for the reasons given; none is left out unnoticed."""
    tests = results[suite]
    assert len(tests) == TESTS[suite][form(short=1, long=0)]
    failed = {test.method: test.wrong for test in tests if test.wrong}
    assert failed.keys() == EXPECTED[suite].keys(), failed


@pytest.mark.parametrize("suite", [suite for suite, failing in EXPECTED.items() if failing])
def test_what_fails_is_no_worse_than_kafkas(
    suite: str, results: dict[str, list[Result]], oracle: Oracle
) -> None:
    """For the same question Kafka is no better: loads, kept, spread, older claims, racks."""
    failed = [test for test in results[suite] if test.wrong]
    assert failed
    for test in failed:
        assert test.question
        question = test.question
        members = {name: Member(**member) for name, member in question["members"].items()}
        racks = question.get("replica_racks")
        problem = Problem.of(question["topics"], members, replica_racks=racks)
        kafkas = "uniform" if suite.startswith("Uniform") else "sticky"
        theirs = owner_of(problem, oracle.ask(kafkas, **question))
        ours = assign("sticky", problem)
        assert value(problem, ours.owner) <= value(problem, theirs), test.method


def value(problem: Problem, owner: Int32) -> tuple[object, ...]:
    """Return all aims of an assignment, less being better."""
    near = in_replica_rack(problem, np.arange(owner.size), owner)
    return (
        *sticky_value(problem, owner),
        *spread(problem, owner),
        *not_back(problem, owner),
        -int(near.sum()),
    )
