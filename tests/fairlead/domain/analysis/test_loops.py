"""Closed loops of the model in `outside`: the plans that simulated groups get within hours."""

from dataclasses import replace

import numpy as np
import pytest

from tests.fairlead.domain.analysis.outside import HOUR, Group, Loop, by_day, steady, written, zipf

READS = {f"m{n}": ("t",) for n in range(6)}
TOPICS = {"t": 36}
SPEEDS = steady(np.full(6, 100.0))
EVEN = np.full(36, 10.0)
SKEWED = np.sort(zipf(36, 0.6, 0.8, 600.0))[::-1]


def group(rates: object = EVEN, **more: object) -> Group:
    """Return a group of 36 partitions and six members, each of which can read 100 records/s."""
    given = {"rates": rates if callable(rates) else steady(np.asarray(rates)), "speeds": SPEEDS}
    return Group(topics=TOPICS, reads=READS, **(given | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "healthy",
    [
        group(),
        group(commit_s=420.0),
        group(by_count=1000),
        group(batch_s=60.0),
        group(0.1 * EVEN),
        group(0.005 * EVEN, markers=True),
        group(by_day(2 * EVEN, 0.4, 0.8)),
        group(lambda now: EVEN if now < 3 * HOUR else 0 * EVEN),
    ],
)
def test_a_healthy_group_is_left_alone(healthy: Group) -> None:
    """None of these commit intervals and arrival patterns leads to a plan or diagnosed problem."""
    course = Loop(healthy, step_s=20.0, since_h=1.5).run(6)
    assert (course.plans, course.over_objective) == ([], 0)
    assert {name for name, _ in course.diagnoses} <= {"healthy", "unknown"}


@pytest.mark.parametrize("batch_s", [80.0, 120.0])
def test_a_batch_that_has_just_arrived_is_no_backlog(batch_s: float) -> None:
    """If producers send batches less often than samples are taken, no plan is made."""
    rates = np.random.default_rng(5).lognormal(0.0, 0.3, 224)
    batches = Group(
        rates=steady(rates / rates.sum() * 28 * 36.0),
        speeds=steady(np.full(28, 60.0)),
        topics={"t": 224},
        reads={f"m{number:02d}": ("t",) for number in range(28)},
        commit_s=30.0,
        batch_s=batch_s,
    )
    course = Loop(batches, since_h=0.0).run(6)
    assert course.plans == []
    assert {name for name, _ in course.diagnoses} <= {"healthy", "recovering", "unknown"}


def test_the_effect_of_a_plan_is_awaited_for_two_commits() -> None:
    """If members commit every seven minutes, plans are about two commits (14 minutes) apart."""
    slow = group(1.3 * EVEN, speeds=steady(np.array([60.0, 140.0] * 3)), commit_s=420.0)
    course = Loop(slow, step_s=20.0, decide_s=120.0, since_h=2.0).run(4)
    hours = [hour for hour, *_ in course.plans]
    assert min(np.diff([*hours, 4.0])) > 13 / 60
    reasons = [answer["reason"] for _, answer in course.answers]
    assert any("members commit rarely" in reason for reason in reasons)
    assert course.over_objective == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "sick",
    [
        group(SKEWED),
        group(SKEWED, commit_s=120.0),
        group(SKEWED, by_count=500),
        group(SKEWED, markers=True),
        group(1.3 * EVEN, speeds=steady(np.array([60.0, 140.0] * 3))),
        group(speeds=steady(np.array([100.0] * 4 + [35.0, 45.0]))),
    ],
)
def test_a_sick_group_is_cured_by_few_plans(sick: Group) -> None:
    """One to four plans reduce the time for which partitions exceed the objective by 99 %."""
    course = Loop(sick, step_s=20.0, since_h=3.0).run(8)
    never = Loop(sick, step_s=20.0, since_h=3.0, decide_s=1e9).run(8)
    assert 1 <= len(course.plans) <= 4
    assert course.over_objective <= 0.01 * never.over_objective


def test_plans_leave_no_member_over_its_capacity_in_a_nearly_full_group() -> None:
    """At 98.5 % of the group's capacity, partitions soon stay within the objective."""
    full = replace(group(np.sort(zipf(60, 0.6, 0.985, 600.0))[::-1]), topics={"t": 60})
    course = Loop(full, step_s=20.0, since_h=3.0).run(8)
    plans = [answer["forecast"].get("planned") for _, answer in course.answers]
    assert all(planned["utilisation"] < 1 for planned in plans if planned)
    assert course.over_objective < 2_000


def hot_partition(*speeds: float, hot: float = 90.0) -> Loop:
    """Return a loop with six partitions per member; only the first partition is hot."""
    count = len(speeds)
    uneven = Group(
        rates=steady(np.array([hot] + [4.0] * (6 * count - 1))),
        speeds=steady(np.array(speeds)),
        topics={"t": 6 * count},
        reads={f"m{number}": ("t",) for number in range(count)},
        owner=np.repeat(np.arange(count), 6),
    )
    return Loop(uneven, step_s=20.0, since_h=1.5)


def test_a_hot_partition_is_not_moved_to_every_member() -> None:
    """If no member can keep up with a partition, at most six plans are made in 30 hours.

    All other partitions stay within the objective.
    """
    course = hot_partition(*[60.0] * 8).run(30)
    assert len(course.plans) <= 6
    assert course.over_objective <= 28.5 * 60 + 30
    assert course.answers[-1][1]["names"] == ["t-0"]


def test_a_hot_partition_goes_to_the_fastest_member() -> None:
    """If no member can keep up with a partition, the fastest member gets the partition."""
    speeds = (70.0, 100.0, 140.0, 70.0)
    loop = hot_partition(*speeds, hot=190.0)
    loop.capacities = {
        name: {"records_per_s": speed, "measured": True, "at": written(0.0)}
        for name, speed in zip(loop.names, speeds, strict=True)
    }
    course = loop.run(4)
    assert loop.names[loop.owner[0]] == "m2"
    assert len(course.plans) <= 2
    assert course.answers[-1][1]["names"] == ["t-0"]
