"""A recording: its arrivals, measured speeds and time lag."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.catalogue import SCENARIOS
from benchmarks.simulation.scenario import Scenario, Slow
from benchmarks.simulation.traffic import HOUR_S, Traffic
from fairlead.surfaces.backtest.recording import Recording, replayable
from tests.fairlead.surfaces.backtest.recordings import recorded
from tests.samples import samples

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def sample(minute: int, end: dict[str, list[int]], **values: Any) -> dict[str, Any]:
    """Return a sample in which one member owns everything and is one record behind."""
    ends = [offset for topic in end.values() for offset in topic]
    return {
        "at": NOON + timedelta(minutes=minute),
        "topics": list(end),
        "counts": [len(topic) for topic in end.values()],
        "members": ["a"],
        "owner": [0] * len(ends),
        "begin": [0] * len(ends),
        "end": ends,
        "committed": [max(offset - 1, -1) for offset in ends],
    } | values


def recording(*rows: dict[str, Any]) -> Recording:
    """Return the recording of these samples."""
    return Recording.of(samples(*rows))


def test_what_arrived_is_what_was_recorded() -> None:
    """Arrivals are spread between two samples; a reset or unknown log has no arrivals."""
    arrivals = (
        recording(
            sample(0, {"t": [100, 50]}),
            sample(10, {"t": [700, 50]}),
            sample(20, {"t": [5, -1]}),
            sample(30, {"t": [65, 90]}),
        )
        .world()
        .arrivals
    )
    by_stretch = arrivals.reshape(3, 60, 2).sum(axis=1)
    assert by_stretch.tolist() == [[600, 0], [0, 0], [60, 40]]
    assert (arrivals >= 0).all()
    assert arrivals[:60, 0].max() < 60


def test_members_and_partitions_come_and_go() -> None:
    """Members and partitions exist from their first sample on; the first lag waits at the start."""
    world = recording(
        sample(0, {"t": [10]}),
        sample(10, {"t": [20, 7]}, members=["b"]),
        sample(20, {"t": [20, 9]}),
    ).world()
    assert world.roster.members == ("a", "b")
    assert world.present[[0, 59, 60, 119]].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert world.exists[[0, 60]].tolist() == [[True, False], [True, True]]
    assert world.waiting.tolist() == [1, 0]
    assert world.arrivals.sum(axis=0).tolist() == [10, 9]


def test_topic_is_there_while_a_member_reads_it() -> None:
    """A topic that the group has left does not exist and adds no time lag, despite old commits."""
    left = sample(20, {"t": [20], "u": [50]}, committed=[20, 10], owner=[0, -1])
    left_for_good = recording(
        sample(0, {"t": [10], "u": [10]}),
        sample(10, {"t": [15], "u": [15]}),
        left | {"subscriptions": [["t"]]},
        left | {"at": NOON + timedelta(minutes=30), "subscriptions": [["t"]], "end": [20, 90]},
    )
    world = left_for_good.world()
    assert world.exists[[0, 119, 120, 179]].tolist() == [[1, 1], [1, 1], [1, 0], [1, 0]]
    assert world.arrivals.sum(axis=0).tolist() == [10, 5]
    assert left_for_good.lags[2:].tolist() == [[0, 0], [0, 0]]


def test_samples_that_cannot_be_replayed_are_told_apart() -> None:
    """Samples with an error, or in which no member reads a partition, are skipped with a reason."""
    good = sample(0, {"t": [10]})
    rows = [
        good,
        good | {"at": NOON + timedelta(minutes=1), "error": "no coordinator"},
        sample(2, {"t": [10]}, members=[], owner=[-1]),
        sample(3, {"t": [10]}, owner=[-1], subscriptions=[["absent"]]),
        sample(4, {"t": [10]}, subscriptions=[["absent", "t"]]),
    ]
    usable, skipped = replayable(samples(*rows))
    assert usable["at"].to_pylist() == [rows[0]["at"], rows[4]["at"]]
    unread = "no member reads a partition"
    reasons = ["no coordinator", unread, unread]
    assert skipped == [(row["at"], why) for row, why in zip(rows[1:4], reasons, strict=True)]


def test_statuses_are_those_of_the_moment() -> None:
    """A partition's status uses only the hour before the sample."""
    lags = recording(
        *(
            sample(minute, {"t": [600 * minute]}, committed=[600 * min(minute, 20)])
            for minute in range(60)
        )
    )
    assert [lags.statuses(number) for number in (20, 59)] == [{"OK"}, {"STOP"}]


def test_speeds_are_measured_where_members_were_at_their_limit() -> None:
    """Overloaded members' speeds are right within 5%; others' are at least their throughput."""
    taken, ran = recorded(SCENARIOS["skew"], hours=6)
    speeds = Recording.of(taken).speeds
    truth = ran.world.speeds[0]
    arrivals = np.bincount(np.arange(100) // 10, weights=ran.world.rates[0])
    overloaded = np.flatnonzero(arrivals > truth)
    assert overloaded.tolist() == [1, 5]
    assert speeds[-1][overloaded] == pytest.approx(truth[overloaded], rel=0.05)
    assert (speeds[-1] >= np.minimum(arrivals, truth) * 0.95).all()


def test_a_member_that_gets_slow_is_slow_from_then_on() -> None:
    """A member's speed is measured for each hour, so it falls when the member becomes slow."""
    slow = (Slow(1, 0.4, 4 * HOUR_S),)
    group = Scenario(
        "two", "one gets slow", "changing", Traffic(used=1.2), (100.0, 100.0), topics=(4,)
    )
    taken, _ = recorded(replace(group, slow=slow), hours=8)
    per_s = Recording.of(taken).speeds
    assert per_s[1] == pytest.approx([100, 100], rel=0.05)
    assert per_s[-1] == pytest.approx([100, 40], rel=0.05)
