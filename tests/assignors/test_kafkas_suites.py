"""Kafka's own suites of its assignors, run on ours through `fairlead assign`."""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assignors.ledger import in_replica_rack
from assignors.problem import Int32, Member, Problem
from fairlead.sandbox.java import find_java
from tests.assignors.problems import spread, sticky_value
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
RANGE_HAS_NO_RACKS = "range has no racks; the test wants partitions near their replicas"
WHICH_ONE_MOVES = (
    "an equal optimum: one partition of topic2 moves to the third consumer, here the second "
    "consumer's, as in the third example of KIP-54, there the first's"
)
ORDER_OF_A_LIST = "the order of new partitions within a list, which says nothing; the same share"
RACKS_COME_LAST = (
    "Kafka gives up kept partitions and spread for racks; here racks decide between equals alone"
)
SAME_VALUE = "an equal optimum: as good in loads, kept, spread and racks, as a test below shows"
STICKY = {
    "testMaxQuotaConsumerMoreThanNumExpectedMaxCapacityMembers": WHICH_ONE_MOVES,
    "testAddRemoveTwoConsumersTwoTopics": ORDER_OF_A_LIST,
    "testRackAwareAssignmentWithUniformSubscription": SAME_VALUE,
    "testRackAwareAssignmentWithNonEqualSubscription": SAME_VALUE,
}
EXPECTED: dict[str, dict[str, str]] = {
    "RangeAssignorTest": dict.fromkeys(
        (
            "testRackAwareAssignmentWithUniformSubscription",
            "testRackAwareAssignmentWithNonEqualSubscription",
            "testRackAwareAssignmentWithUniformPartitionsNonEqualSubscription",
            "testRackAwareAssignmentWithCoPartitioning",
            "testRackAwareStaticMemberRangeAssignmentPersistentAfterMemberIdChanges",
            "testCoPartitionedAssignmentWithSameSubscription",
        ),
        RANGE_HAS_NO_RACKS,
    ),
    "RoundRobinAssignorTest": {},
    "StickyAssignorTest": STICKY,
    "CooperativeStickyAssignorTest": {
        **STICKY,
        "testUniformSubscriptionTransferOwnershipListIsRight": RACKS_COME_LAST,
    },
}
# Tests of each suite, with and without the long ones: none may be lost.
TESTS = {
    "RangeAssignorTest": (44, 44),
    "RoundRobinAssignorTest": (13, 13),
    "StickyAssignorTest": (141, 130),
    "CooperativeStickyAssignorTest": (122, 111),
}


@dataclass(frozen=True)
class Result:
    """One test: what was wrong, if anything, and what had been asked last."""

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
            *(str(find_java()), "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"),
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


@pytest.mark.parametrize("suite", ["StickyAssignorTest", "CooperativeStickyAssignorTest"])
def test_an_equal_optimum_is_one(suite: str, results: dict[str, list[Result]]) -> None:
    """Where Kafka's suite wants another placement, ours has the same value in every aim."""
    others = [test for test in results[suite] if EXPECTED[suite].get(test.method) == SAME_VALUE]
    assert len([test for test in others if test.wrong]) == 2
    for test in others:
        assert test.wrong
        assert test.question
        wanted = re.search(r"expected: <\{(.*)\}> but was: <\{(.*)\}>", test.wrong)
        assert wanted
        question = test.question
        members = {name: Member(**member) for name, member in question["members"].items()}
        problem = Problem.of(question["topics"], members, replica_racks=question["replica_racks"])
        theirs, ours = (owners(problem, shares) for shares in wanted.groups())
        assert value(problem, ours) == value(problem, theirs), test.method


def owners(problem: Problem, shares: str) -> Int32:
    """Read a Java map of members to topic partitions: `a=t-0, t-1, b=t-2`."""
    owner = np.full(problem.partition_total, -1, dtype=np.int32)
    member = -1
    for entry in shares.split(", "):
        *name, partition = entry.split("=")
        member = problem.members.index(name[0]) if name else member
        topic, number = partition.rsplit("-", 1)
        owner[problem.topic_offsets[problem.topics.index(topic)] + int(number)] = member
    return owner


def value(problem: Problem, owner: Int32) -> tuple[object, ...]:
    """Return all aims of an assignment: loads, kept, spread, racks."""
    near = in_replica_rack(problem, np.arange(owner.size), owner)
    return (*sticky_value(problem, owner), *spread(problem, owner), int(near.sum()))
