"""What a recording says: arrivals that were, speeds that were measured, lateness that was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.run_figures import RunFigures
from benchmarks.simulation.scenario import Scenario, Slow
from benchmarks.simulation.traffic import HOUR_S, Traffic
from fairlead.surfaces.backtest.recording import Recording, Snapshot
from tests.fairlead.surfaces.backtest.recordings import recorded

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def snapshot(minute: int, end: dict[str, list[int]], owner: str = "a") -> Snapshot:
    """One member owns everything and has committed everything but the last record."""
    ends = {topic: np.array(values, np.int64) for topic, values in end.items()}
    return Snapshot(
        at=NOON + timedelta(minutes=minute),
        members={owner: tuple(end)},
        owned={owner: {topic: range(len(values)) for topic, values in end.items()}},
        begin={topic: np.zeros_like(values) for topic, values in ends.items()},
        end=ends,
        committed={topic: np.maximum(values - 1, -1) for topic, values in ends.items()},
    )


def test_what_arrived_is_what_was_recorded() -> None:
    """Between two snapshots all of it, whenever; none where a log was made anew or is unknown."""
    recording = Recording.of(
        [
            snapshot(0, {"t": [100, 50]}),
            snapshot(10, {"t": [700, 50]}),
            snapshot(20, {"t": [5, -1]}),
            snapshot(30, {"t": [65, 90]}),
        ]
    )
    arrivals = recording.world().arrivals
    by_stretch = arrivals.reshape(3, 60, 2).sum(axis=1)
    assert by_stretch.tolist() == [[600, 0], [0, 0], [60, 40]]
    assert (arrivals >= 0).all()
    assert arrivals[:60, 0].max() < 60


def test_members_and_partitions_come_and_go() -> None:
    """Who is there, and what, is what the newest snapshot says; what waits at first is the lag."""
    recording = Recording.of(
        [snapshot(0, {"t": [10]}), snapshot(10, {"t": [20, 7]}, "b"), snapshot(20, {"t": [20, 9]})]
    )
    world = recording.world()
    assert world.roster.members == ("a", "b")
    assert world.present[[0, 59, 60, 119]].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert world.exists[[0, 60]].tolist() == [[True, False], [True, True]]
    assert world.waiting.tolist() == [1, 0]
    assert world.arrivals.sum(axis=0).tolist() == [10, 9]


def test_long_recordings_take_longer_steps() -> None:
    """A week takes as many steps as two days."""
    week = Recording.of([snapshot(0, {"t": [1]}), snapshot(7 * 24 * 60, {"t": [2]})])
    assert week.step_s == 40
    assert len(week.world().arrivals) == 7 * 86_400 / 40


def test_speeds_are_measured_where_members_were_at_their_limit() -> None:
    """Two of ten are overloaded and known within 5 %; the others count as faster than shown."""
    snapshots, ran = recorded(SCENARIOS["skew"], hours=6)
    speeds = Recording.of(snapshots).speeds
    truth = ran.world.speeds[0]
    assert np.flatnonzero(speeds.measured).tolist() == [1, 5]
    assert speeds.per_s[-1][speeds.measured] == pytest.approx(truth[speeds.measured], rel=0.05)
    arrivals = np.bincount(np.arange(100) // 10, weights=ran.world.rates[0])
    assert (speeds.per_s[-1] >= np.minimum(arrivals, truth) * 0.95).all()


def test_a_member_that_gets_slow_is_slow_from_then_on() -> None:
    """Speeds are those of each hour."""
    slow = (Slow(1, 0.4, 4 * HOUR_S),)
    group = Scenario(
        "two", "one gets slow", "changing", Traffic(used=1.2), (100.0, 100.0), topics=(4,)
    )
    snapshots, _ = recorded(replace(group, slow=slow), hours=8)
    per_s = Recording.of(snapshots).speeds.per_s
    assert per_s[1] == pytest.approx([100, 100], rel=0.05)
    assert per_s[-1] == pytest.approx([100, 40], rel=0.05)


def test_lateness_is_as_it_was() -> None:
    """From what was committed at snapshots, within what lies between two of them."""
    snapshots, ran = recorded(SCENARIOS["skew"], hours=6)
    lags = Recording.of(snapshots).lags
    assert lags[-1].max() == pytest.approx(RunFigures.of(ran, warm_up_s=0).max_s, rel=0.05)
    assert ((lags > 60).sum(axis=1)[20:] == 20).all()
