"""Replays of a recording: time behind and moves for each assignor."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache

import pytest

from benchmarks.simulation.catalogue import SCENARIOS
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.policy import Approval, Policy
from fairlead.simulation.controllers import START
from fairlead.surfaces.backtest.recording import Recording
from fairlead.surfaces.backtest.replay import RECORDED, Stretch, replay
from tests.fairlead.surfaces.backtest.recordings import recorded
from tests.samples import samples


@cache
def skewed() -> Recording:
    """Return six hours under `range`, in which two of ten members are overloaded."""
    return Recording.of(recorded(SCENARIOS["skew"], hours=6)[0])


@cache
def replayed(assignor: str) -> list[Stretch]:
    """Return the replay of that recording with an assignor and the default policy."""
    return [*replay(skewed(), assignor, Policy())]


def late(stretches: Sequence[Stretch]) -> float:
    """Return the time over the objective, in partition-minutes."""
    return sum(stretch.over_objective_s for stretch in stretches) / 60


def moves(stretches: Sequence[Stretch]) -> list[int]:
    return [stretch.moved for stretch in stretches]


def test_replaying_what_was_gives_what_was() -> None:
    """A replay of the recorded assignment reproduces the recorded time lag within 3%."""
    measured = late(replayed(RECORDED))
    assert late(replayed(OBSERVED)) == pytest.approx(measured, rel=0.03)
    assert late(replayed("range")) == pytest.approx(measured, rel=0.03)


@pytest.mark.long
def test_plans_are_published_as_the_policy_would() -> None:
    """A replay publishes no plan that the policy forbids, and none if the objective is met."""

    def published(policy: Policy) -> tuple[int, int]:
        ran = [*replay(skewed(), "sticky-lag-aware", policy)]
        return sum(outcome.published for outcome in ran), sum(outcome.held_back for outcome in ran)

    strict = Policy(approval=Approval(automatic=True, max_moves=0))
    made, held_back = published(strict)
    assert made == 0
    assert held_back >= 1
    assert published(Policy(objective=timedelta(days=1))) == (0, 0)
    assert published(Policy(four_eyes="database"))[0] >= 1


def hourly(*owners: str) -> Recording:
    """Return hourly samples of an idle topic; letter p of a sample is the owner of partition p."""
    rows = []
    for hour, owner in enumerate(owners):
        members = sorted(set(owner))
        rows.append(
            {
                "at": START + timedelta(hours=hour),
                "topics": ["t"],
                "counts": [len(owner)],
                "begin": [0] * len(owner),
                "end": [1000 * hour] * len(owner),
                "committed": [1000 * hour] * len(owner),
                "members": members,
                "owner": [members.index(name) for name in owner],
            }
        )
    return Recording.of(samples(*rows))


def test_sticky_sticks_to_its_own_assignment_not_to_the_real_one() -> None:
    """A sticky replay keeps its own assignment, and moves a partition only to a new member."""
    day = hourly("aabb", "bbaa", "bcaa", "bcaa")
    assert moves([*replay(day, RECORDED, Policy())]) == [4, 1, 0]
    assert moves([*replay(day, OBSERVED, Policy())]) == [0, 4, 1]
    assert moves([*replay(day, "sticky", Policy())]) == [0, 0, 1]


def test_a_new_member_takes_over_the_share_of_the_one_that_left() -> None:
    """A restarted member with a new name takes over its share, without a move or a plan."""
    day = hourly("abba", "acca", "acca")
    planned = [*replay(day, "sticky-lag-aware", Policy())]
    assert (moves(planned), sum(outcome.published for outcome in planned)) == ([0, 0], 0)
    assert moves([*replay(day, "range", Policy())]) == [0, 0]
