"""The analysis' input, made from samples and remembered estimates."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fairlead.domain.analysis.capacities import Capacity, remembered
from fairlead.domain.samples.questions import Group, PlanningOptions, question_about
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW = {
    "topics": ["t"],
    "counts": [1],
    "begin": [0],
    "end": [100],
    "committed": [100],
    "members": ["a"],
    "owner": [0],
}


def group(**more: Any) -> Group:
    """Return a group with two samples, a minute apart."""
    earlier, now = ({**NOW, "at": NOON - timedelta(minutes=ago), **more} for ago in (1, 0))
    return Group(samples(earlier, now))


def test_speed_dated_ahead_does_not_win_over_a_newer_measurement() -> None:
    ahead = Capacity(20.0, measured=True, at=(NOON + timedelta(days=1)).timestamp())
    sampled = replace(group(), capacities={"a": ahead})
    known = question_about(sampled, PlanningOptions()).capacities
    measured = Capacity(100.0, measured=True, at=NOON.timestamp())
    assert remembered(known, {"a": measured}, NOON.timestamp()) == {"a": measured}


def test_newest_sample_is_the_present() -> None:
    before = NOW | {"at": NOON - timedelta(minutes=1), "members": ["a", "gone"], "owner": [1]}
    sampled = Group(samples(before, NOW | {"at": NOON, "group": "orders"}))
    assert (sampled.name, sampled.now["members"], sampled.now["at"]) == ("orders", ["a"], NOON)
    question = question_about(sampled, PlanningOptions())
    assert tuple(question.problem.members) == ("a",)
    assert question.series.members == ("a", "gone")
    assert question.series.owner.tolist() == [[1], [0]]


def test_samples_and_problem_have_the_same_partitions() -> None:
    several = {
        "topics": ["a", "b", "left"],
        "counts": [1, 2, 1],
        "begin": [0, 0, 0, 0],
        "end": [10, 20, 30, 40],
        "committed": [9, 18, 27, -1],
        "members": ["m", "n"],
        "owner": [1, 0, -1, -1],
        "subscriptions": [["b"], ["a", "b"]],
    }
    question = question_about(group(**several), PlanningOptions())
    problem = question.problem
    assert [*problem.topics] == ["a", "b"]
    assert problem.owner.tolist() == [1, 0, -1]
    assert question.series.lag[-1].tolist() == [1, 2, 3]


def test_unknown_offsets_are_refused_with_their_topic() -> None:
    with pytest.raises(ValueError, match="topic t: the lag of some partition is not known"):
        question_about(group(end=[-1]), PlanningOptions())
