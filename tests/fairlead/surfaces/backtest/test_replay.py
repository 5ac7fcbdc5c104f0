"""Replays of a recorded group with several assignors, and the moves and lag of each."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache

import pytest

from benchmarks.simulation.catalogue import SCENARIOS
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.policy import Policy
from fairlead.simulation.controllers import START
from fairlead.surfaces.backtest.recording import Recording
from fairlead.surfaces.backtest.replay import RECORDED, Stretch, replay
from tests.fairlead.surfaces.backtest.recordings import recorded
from tests.samples import samples


@cache
def skewed() -> Recording:
    """Return six hours of a group that uses `range`; two of its ten members are overloaded."""
    return Recording.of(recorded(SCENARIOS["skew"], hours=6)[0])


@cache
def replayed(assignor: str) -> list[Stretch]:
    """Return the replay of `skewed` with an assignor, under the default policy."""
    return [*replay(skewed(), assignor, Policy())]


def late(stretches: Sequence[Stretch]) -> float:
    """Return for how many minutes the lag exceeded the objective, summed over partitions."""
    return sum(stretch.over_objective_s for stretch in stretches) / 60


def moves(stretches: Sequence[Stretch]) -> list[int]:
    return [stretch.moved for stretch in stretches]


def test_replay_with_the_actual_owners_has_the_recorded_lag() -> None:
    """Replays with the real owners or `range` exceed the objective for as long as was recorded.

    The difference is at most 3 %.
    """
    measured = late(replayed(RECORDED))
    assert late(replayed(OBSERVED)) == pytest.approx(measured, rel=0.03)
    assert late(replayed("range")) == pytest.approx(measured, rel=0.03)


def hourly(*owners: str) -> Recording:
    """Return hourly samples of a topic.

    Each text is a sample: its first letter is the owner of partition 0, and so on.
    """
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


def test_sticky_keeps_its_own_assignment() -> None:
    """The recorded members swap all partitions; in the replay, `sticky` moves only one.

    `sticky` moves this partition to a new member.
    """
    day = hourly("aabb", "bbaa", "bcaa", "bcaa")
    assert moves([*replay(day, RECORDED, Policy())]) == [4, 1, 0]
    assert moves([*replay(day, OBSERVED, Policy())]) == [0, 4, 1]
    assert moves([*replay(day, "sticky", Policy())]) == [0, 0, 1]


def test_new_member_takes_over_the_share_of_a_former_member() -> None:
    """If a member is replaced, the new member gets the same partitions, without a plan."""
    day = hourly("abba", "acca", "acca")
    planned = [*replay(day, "sticky-lag-aware", Policy())]
    assert (moves(planned), sum(outcome.published for outcome in planned)) == ([0, 0], 0)
    assert moves([*replay(day, "range", Policy())]) == [0, 0]
