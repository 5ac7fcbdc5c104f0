"""Diagnoses of simulated groups whose problem is known."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from fairlead.domain.decide_json.lines import answer_question
from tests.fairlead.domain.analysis.outside import Group, Loop, answer_after, steady, zipf
from tests.fairlead.domain.analysis.questions import halves, question

EVEN = Group(
    steady(np.full(30, 10.0)),
    steady(np.full(6, 100.0)),
    topics={"t": 30},
    reads={f"m{n}": ("t",) for n in range(6)},
)
SLOW = np.array([100.0, 100.0, 30.0, 100.0, 100.0, 100.0])
HOT = np.where(np.arange(30) == 11, 130.0, 8.0)


@pytest.mark.parametrize(
    ("group", "name", "names"),
    [
        (EVEN, "healthy", []),
        (replace(EVEN, commit_s=75.0), "healthy", []),
        (replace(EVEN, rates=steady(np.full(30, 0.0))), "healthy", []),
        (replace(EVEN, speeds=steady(SLOW)), "slow member", ["m2"]),
        (replace(EVEN, rates=steady(np.full(30, 24.0))), "overloaded", []),
        (replace(EVEN, rates=steady(HOT)), "hot partition", ["t-11"]),
        (replace(EVEN, uncommitted=lambda _: (7,)), "stuck partition", ["t-7"]),
        (replace(EVEN, silent=lambda _: (4,)), "unknown", ["m4"]),
        (
            replace(EVEN, rates=steady(np.sort(zipf(30, 0.8, 0.6, 600.0))[::-1])),
            "unbalanced",
            ["m0"],
        ),
    ],
)
def test_known_problem_is_diagnosed(group: Group, name: str, names: list[str]) -> None:
    answer = answer_after(group, 1.5)
    assert answer["diagnosis"] == name, answer["evidence"]
    named = answer["names"]
    if name == "slow member":  # ignore the names of partitions that may be expensive
        named = [word for word in named if "-" not in word]
    assert named == names, answer["evidence"]


@pytest.mark.parametrize(
    ("group", "behind", "name"),
    [
        (replace(EVEN, rates=steady(np.full(30, 28.0))), np.arange(30) >= 0, "overloaded"),
        (replace(EVEN, speeds=steady(SLOW)), np.arange(30) // 5 == 2, "slow member"),
        (replace(EVEN, rates=steady(HOT)), np.arange(30) // 5 == 2, "hot partition"),
    ],
)
def test_six_samples_suffice_for_an_older_problem(
    group: Group, behind: np.ndarray[Any, np.dtype[np.bool_]], name: str
) -> None:
    """If a backlog existed before the first sample, six samples suffice for the diagnosis."""
    answer = answer_after(replace(group, backlog=2000.0 * behind.astype(np.float64)), hours=5 / 60)
    assert answer["diagnosis"] == name, answer["evidence"]


def test_a_group_without_spare_capacity_is_not_unbalanced() -> None:
    """If all members fall behind, the diagnosis is first "unknown", then "overloaded"."""
    late = replace(EVEN, rates=steady(np.full(30, 28.0)))
    answer = answer_after(late, hours=5 / 60)
    assert (answer["outcome"], answer["diagnosis"]) == ("no change", "unknown")
    assert "every member falls behind" in answer["evidence"]
    assert answer_after(late, hours=0.25)["diagnosis"] == "overloaded"


def test_a_silent_member_is_named_despite_samples_without_owners() -> None:
    """A member that stops committing is named even if two later samples lack owners."""
    line = question(
        40,
        end=lambda _, step: 1000 + 600 * step,
        committed=lambda p, step: 1000 + 600 * (min(step, 20) if p < 4 else step) - 3 * (step > 0),
        owner=lambda partition, step: None if step in {30, 36} else halves(partition, step),
    )
    answer = answer_question(line)
    assert (answer["outcome"], answer["diagnosis"], answer["names"]) == (
        "no change",
        "unknown",
        ["a"],
    )


def test_members_of_unknown_capacity_relieve_a_slow_one() -> None:
    """A slow member gets relief although no other member's capacity is known."""
    rates = np.repeat([18.0, 11.0, 11.0, 11.0], 5)
    speeds = steady(np.array([60.0, 100.0, 100.0, 100.0]))
    reads = {f"m{n}": ("t",) for n in range(4)}
    group = Group(steady(rates), speeds, topics={"t": 20}, reads=reads)
    course = Loop(group, step_s=20.0, since_h=2.0).run(4)
    assert 1 <= len(course.plans) <= 3
    assert course.over_objective == 0


@pytest.mark.parametrize("new", [1, 3])
def test_new_members_do_not_make_a_group_unknown(new: int) -> None:
    """The group is healthy although its new members have committed only twice."""
    members = [f"m{number}" for number in range(5)]
    line = question(
        30,
        partitions=5,
        committed=lambda p, step: 1000 * (p + 1) + 60 * (step // 4 * 4) - 3,
        owner=lambda p, step: "old" if p < new and step < 20 else members[p],
    )
    line["members"] = {member: {"topics": ["t"]} for member in members}
    answer = answer_question(line)
    assert answer["diagnosis"] == "healthy", answer["evidence"]


def test_evidence_compares_the_last_member_with_another() -> None:
    """The evidence compares the member that is behind with another member, not with itself."""
    start = datetime(2026, 3, 2, tzinfo=UTC)
    answer = answer_question(
        {
            "policy": {"objective": "PT1M", "horizon": "PT30S"},
            "topics": {"t": 4},
            "members": {"a": {"topics": ["t"]}, "b": {"topics": ["t"]}},
            "capacities": {
                name: {"records_per_s": per_s, "measured": True, "at": start.isoformat()}
                for name, per_s in (("a", 0.2), ("b", 0.25))
            },
            "snapshots": [
                {
                    "at": (start + timedelta(minutes=minute)).isoformat(),
                    "begin": {"t": [0] * 4},
                    "end": {"t": [500, 500, minute, minute]},
                    "committed": {"t": [6 * minute, 6 * minute, minute, minute]},
                    "owners": {"t": ["a", "a", "b", "b"]},
                }
                for minute in range(20)
            ],
        }
    )
    assert answer["diagnosis"] == "unbalanced"
    assert answer["evidence"].startswith("a is at 0%")
    assert "; b is at " in answer["evidence"]
