"""The closed loop: reads, commits, downtime of moves, and samples."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.churn import MemberChange
from benchmarks.simulation.controllers import ByAssignor
from benchmarks.simulation.costs import Dear, TrueCosts
from benchmarks.simulation.crawling import Crawl
from benchmarks.simulation.loop import run
from benchmarks.simulation.run_figures import RunFigures
from benchmarks.simulation.scenario import CommitHabit, Scenario, Stuck
from benchmarks.simulation.traffic import Traffic
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.loop import Cadence

TWO = Scenario("two", "two members, four partitions", "healthy", speeds=(100.0, 100.0), topics=(4,))


def world(hours: float = 2.0, **changes: Any) -> ScenarioWorld:
    return ScenarioWorld.of(replace(TWO, **changes), seed=3, hours=hours)


def test_nothing_is_lost(scripted: Any) -> None:
    """Every record that arrived is read or waits, and no other record is read."""
    ran = run(world(traffic=Traffic(used=0.9, zipf=1.0)), scripted({1: [1, 0, 0, 1]}))
    read = ran.world.ends - ran.waiting
    assert (ran.waiting >= 0).all()
    assert (np.diff(read, axis=0) > -1e-6).all()
    budget = 100.0 * ran.world.step_s
    assert np.diff(read.sum(axis=1)).max() <= 2 * budget + 1e-6


def test_an_overload_grows_by_what_is_too_much(scripted: Any) -> None:
    """At 150 % the backlog grows by half of the capacity; all partitions have the same lag."""
    ran = run(world(traffic=Traffic(used=1.5)), scripted())
    grown = ran.waiting[-1].sum() / (2 * 3600)
    assert grown == pytest.approx(100.0, rel=0.02)
    # A reader at 1 / 1.5 of what arrives falls behind by a third of each second.
    assert ran.time_lags()[-1] == pytest.approx(2 * 3600 / 3, rel=0.1)


def test_what_moves_stands_still(scripted: Any) -> None:
    """A moved partition is not read for the pause; the others are."""
    ran = run(
        world(traffic=Traffic(used=0.2)), scripted({0: [1, 1, 0, 1]}), Cadence(move_downtime_s=20)
    )
    assert (ran.waiting[91:93, 0] > 0).all()
    assert ran.waiting[92, 0] > ran.waiting[91, 0]
    assert not ran.waiting[93:].any()
    assert not ran.waiting[:, 1:].any()
    assert [(h.at_s, h.planned, h.moved, h.paused) for h in ran.handovers] == [(900, True, 1, 1)]


def test_commits_are_as_old_as_their_interval(scripted: Any) -> None:
    """The lag of a member that keeps up is the arrivals since its last commit."""
    script = scripted()
    run(world(traffic=Traffic(used=0.6)), script)
    lags = np.concatenate([moment.problem.weights for moment in script.moments])
    assert 0 <= lags.min() <= lags.max() <= 30 * 5 * 2
    late = scripted()
    ran = run(world(traffic=Traffic(used=0.6), commits=CommitHabit(420.0)), late)
    series = late.series[-1]
    lag = series.end - series.committed
    assert lag.max() == pytest.approx(30 * 420, rel=0.2)
    assert lag.min() < 30 * 61
    assert (np.diff(series.committed, axis=0) >= 0).all()
    assert not ran.waiting.any()


def test_the_truth_is_in_units_of_work() -> None:
    """The truth has the cost of arrivals, and the limit of throttled partitions."""
    truths: list[Any] = []

    class Knowing(ByAssignor):
        def decide(self, moment: Any) -> None:
            truths.append(moment.truth())

    costs, crawling = TrueCosts(dear=(Dear(3.0, (1,)),)), (Crawl(0, per_s=1.0),)
    run(world(traffic=Traffic(used=1.2), costs=costs, crawling=crawling), Knowing("range"))
    rates = 1.2 * 200 / (4 + 2)
    assert truths[-1].rates.tolist() == pytest.approx([1, 3 * rates, rates, rates])
    assert truths[-1].waiting[0] == 0
    assert truths[-1].waiting.sum() > 1000


def test_uncommitted_records_are_read_again_by_the_next_owner(scripted: Any) -> None:
    """Lag grows while the partition is read; its next owner starts at the commit."""
    stuck = (Stuck(0, from_s=600.0),)
    script = scripted({3: [1, 1, 0, 1]})
    ran = run(world(traffic=Traffic(used=0.3), stuck=stuck), script)
    assert script.moments[2].problem.weights[0] == pytest.approx(15 * 2100, rel=0.1)
    assert ran.waiting[:360].max() == 0
    assert ran.waiting[361, 0] == pytest.approx(15 * 3000, rel=0.1)


def test_a_poisoned_partition_is_not_read(scripted: Any) -> None:
    """No owner reads a poisoned partition, and it counts in the figure `stuck`."""
    crawling = (Crawl(0, from_s=600.0),)
    ran = run(world(traffic=Traffic(used=0.3), crawling=crawling), scripted({3: [1, 1, 0, 1]}))
    course = RunFigures.of(ran, warm_up_s=0)
    assert ran.waiting[-1, 0] == pytest.approx(15 * 6600, rel=0.05)
    assert course.over_objective == 0
    assert course.stuck == pytest.approx(110, abs=2)


def test_members_leave_and_come_back(scripted: Any) -> None:
    """Partitions of a member that leaves go to others, are read after the pause, and return."""
    changes = (MemberChange(1200, 1, joins=False), MemberChange(1260, 1, joins=True))
    script = scripted()
    ran = run(world(traffic=Traffic(used=0.3), changes=changes), script)
    gone, back = ran.handovers
    assert (gone.at_s, gone.moved, gone.paused) == (1200, 0, 2)
    assert (back.at_s, back.moved, back.paused) == (1260, 2, 2)
    series = script.series[1]
    absent = series.at - series.at[-1] == 1200 - 1800
    assert series.members == ("member-00", "member-01")
    assert set(series.owner[absent].ravel()) == {0}


def test_samples_are_thinned_after_an_hour() -> None:
    """The loop keeps all samples of the last hour, and one per quarter hour before that."""
    moments: list[Any] = []

    class Watching(ByAssignor):
        def decide(self, moment: Any) -> None:
            moments.append(moment.series())

    run(world(hours=3), Watching("range"))
    at = (moments[-1].at - moments[-1].at[-1]) / 60
    assert (np.diff(at[at >= -60]) == 1).all()
    assert at[at < -60].tolist() == list(range(-150, -60, 15))
