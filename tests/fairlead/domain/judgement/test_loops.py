"""Closed loops of another model of a group than the simulation's: short forms of long runs."""

import numpy as np
import pytest

from tests.fairlead.domain.judgement.outside import HOUR, Group, Loop, by_day, steady, zipf

READS = {f"m{n}": ("t",) for n in range(6)}
TOPICS = {"t": 36}
SPEEDS = steady(np.full(6, 100.0))
EVEN = np.full(36, 10.0)
SKEWED = np.sort(zipf(36, 0.6, 0.8, 600.0))[::-1]


def group(rates: object = EVEN, **more: object) -> Group:
    """Return six members of 100 records a second at 36 partitions."""
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
    """No plan, nothing late, and no diagnosis but that, from the second hour on."""
    course = Loop(healthy, step_s=20.0, since_h=1.5).run(6)
    assert (course.plans, course.late) == ([], 0)
    assert {name for name, _ in course.said} <= {"healthy", "unknown"}


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
    """Hardly anything late from the third hour on, four plans at most."""
    course = Loop(sick, step_s=20.0, since_h=3.0).run(8)
    never = Loop(sick, step_s=20.0, since_h=3.0, decide_s=1e9).run(8)
    assert 1 <= len(course.plans) <= 4
    assert course.late <= 0.01 * never.late
