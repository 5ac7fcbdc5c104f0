"""Estimated capacities of members whose true speeds are known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairlead.domain.analysis.capacities import LARGEST_RATE, Capacity, Speeds, remembered, speeds
from fairlead.domain.analysis.thresholds import DAY_S
from fairlead.domain.decide_json.lines import answer_question
from tests.fairlead.domain.analysis.outside import HOUR, Group, Loop, steady

#: Records a second that each of six members can read; m0 and m1 get more than they can read.
SPEED = 50.0
RATES = np.repeat([14.0, 12.0, 5.0, 6.0, 4.0, 3.0], 5)
READS = {f"m{n}": ("t",) for n in range(6)}
GROUP = Group(steady(RATES), steady(np.full(6, SPEED)), topics={"t": 30}, reads=READS)
HOT = np.where(np.arange(30) % 5 == 0, RATES * 5 - 4 * 0.2, 0.2)


def assumed(members: list[str], *figures: Any) -> Speeds:
    """Return the capacities that an analysis assumes, for members with the same subscription."""
    return speeds(members, *figures, reader_set=np.zeros(len(members), np.int32))


def known_after(group: Group, *, hours: float = 1.0, sample_s: float = 60.0) -> dict[str, Any]:
    """Simulate a group for some hours without a plan; return the capacities in the answer."""
    loop = Loop(group, step_s=5.0, sample_s=sample_s, decide_s=1e9)
    loop.run(hours)
    known: dict[str, Any] = answer_question(loop.question())["capacities"]
    return known


@pytest.mark.parametrize("sample_s", [15.0, 60.0, 300.0])
@pytest.mark.parametrize("commit_s", [5.0, 30.0, 75.0, 420.0, 600.0])
def test_saturated_members_are_measured_within_a_tenth(commit_s: float, sample_s: float) -> None:
    """Members at their limit have a measured capacity; the others have a lower bound."""
    known = known_after(replace(GROUP, commit_s=commit_s), sample_s=sample_s, hours=1.05)
    for number, name in enumerate(READS):
        consumed = min(5 * RATES[5 * number], SPEED)
        if consumed == SPEED:
            assert known[name]["measured"]
            # The time of a commit is known only to within the sampling interval.
            near = 0.1 if sample_s < commit_s / 2 or commit_s < sample_s else 0.15
            assert known[name]["records_per_s"] == pytest.approx(SPEED, rel=near)
        else:
            assert not known[name]["measured"]
            assert known[name]["records_per_s"] > 0.97 * consumed


def test_members_with_a_hot_partition_are_measured() -> None:
    known = known_after(replace(GROUP, rates=steady(HOT)))
    assert known["m0"]["records_per_s"] == pytest.approx(SPEED, rel=0.1)
    assert known["m1"]["records_per_s"] == pytest.approx(SPEED, rel=0.1)
    assert not known["m3"]["measured"]


def test_replacements_of_all_members_inherit_their_capacity() -> None:
    """New members are assumed to be as fast as former ones, until a new member's speed is known."""
    known, busy = {"old": Capacity(50.0, measured=True, at=0.0)}, np.zeros(2, np.bool_)
    assert assumed(["a", "b"], known, np.ones(2), busy, 60.0).per_s.tolist() == [
        65.0,
        65.0,
    ]
    known["a"] = Capacity(80.0, measured=True, at=60.0)
    assert assumed(["a", "b"], known, np.ones(2), busy, 60.0).per_s.tolist() == [
        80.0,
        82.4,
    ]


def test_pauses_are_not_taken_for_slowness() -> None:
    """If members pause for 30 s every ten minutes, the capacity is the speed between pauses."""

    def paused(now: float) -> Any:
        return np.full(6, SPEED if now % 600 >= 30 else 0.0)

    known = known_after(replace(GROUP, speeds=paused))
    assert known["m0"]["records_per_s"] == pytest.approx(SPEED, rel=0.1)


def test_a_member_that_slows_down_is_measured_again() -> None:
    """If a member slows down, its capacity becomes the new speed, not the mean of the hour."""

    def slowing(now: float) -> Any:
        return np.where((np.arange(6) == 0) & (now > HOUR), 0.4 * SPEED, SPEED)

    known = known_after(replace(GROUP, speeds=slowing), hours=1.5)
    assert known["m0"]["records_per_s"] == pytest.approx(0.4 * SPEED, rel=0.1)
    assert known["m1"]["records_per_s"] == pytest.approx(SPEED, rel=0.1)


def test_a_rolling_restart_measures_no_member_too_slow() -> None:
    """If members are away for two minutes, one by one, measured capacities are still right."""

    def present(now: float) -> Any:
        return np.array([not 240 <= now - 400 * n < 360 for n in range(6)])

    known = known_after(replace(GROUP, present=present), hours=1.2)
    measured = [capacity["records_per_s"] for capacity in known.values() if capacity["measured"]]
    assert all(0.9 * SPEED < speed < 1.1 * SPEED for speed in measured)


def test_a_newer_measurement_beats_any_bound() -> None:
    bound = Capacity(90.0, measured=False, at=100.0)
    slow = Capacity(30.0, measured=True, at=200.0)
    assert remembered({"a": bound}, {"a": slow}, 200.0)["a"] == slow
    faster = Capacity(70.0, measured=True, at=300.0)
    assert remembered({"a": faster}, {"a": slow}, 300.0)["a"] == faster


def test_bounds_fade_within_a_day() -> None:
    bound = Capacity(80.0, measured=False, at=0.0)
    none, idle = np.zeros(1), np.zeros(1, np.bool_)
    half = assumed(["a"], {"a": bound}, none, idle, DAY_S / 2).per_s[0]
    assert half == pytest.approx(assumed(["a"], {"a": bound}, none, idle, 0.0).per_s[0] / 2)
    assert remembered({"a": bound}, {}, DAY_S + 1) == {}


def test_members_never_at_their_limit_count_like_measured_peers() -> None:
    known = {
        "a": Capacity(50.0, measured=True, at=0.0),
        "b": Capacity(20.0, measured=False, at=0.0),
        "c": Capacity(80.0, measured=False, at=0.0),
    }
    estimated = assumed(list("abcd"), known, np.zeros(4), np.zeros(4, np.bool_), 0.0)
    assert estimated.per_s[:2].tolist() == [50.0, 50.0]
    assert estimated.per_s[2] == pytest.approx(104.0)
    assert estimated.per_s[3] > 0
    assert estimated.measured.tolist() == [True, False, False, False]


def test_the_largest_capacity_is_bounded() -> None:
    known = remembered({}, {"a": Capacity(5.4e20, measured=False, at=0.0)}, 0.0)
    assert known["a"].records_per_s == LARGEST_RATE
