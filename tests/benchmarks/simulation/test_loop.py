"""The closed loop: what is read, committed, paused and seen."""

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
from benchmarks.simulation.scenario import CommitHabit, Growth, Scenario, Slow, Stuck
from benchmarks.simulation.traffic import Traffic
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.loop import Cadence

TWO = Scenario("two", "two members, four partitions", "healthy", speeds=(100.0, 100.0), topics=(4,))


def world(hours: float = 2.0, **changes: Any) -> ScenarioWorld:
    return ScenarioWorld.of(replace(TWO, **changes), seed=3, hours=hours)


def test_nothing_is_lost(scripted: Any) -> None:
    """What arrived has been read or waits, and nobody reads what has not arrived."""
    ran = run(world(traffic=Traffic(used=0.9, zipf=1.0)), scripted({1: [1, 0, 0, 1]}))
    read = ran.world.ends - ran.waiting
    assert (ran.waiting >= 0).all()
    assert (np.diff(read, axis=0) > -1e-6).all()
    budget = 100.0 * ran.world.step_s
    assert np.diff(read.sum(axis=1)).max() <= 2 * budget + 1e-6


def test_equal_seeds_give_equal_runs(scripted: Any) -> None:
    """A run is decided by its scenario, its seed and who decides."""
    first, other = (run(world(), scripted({1: [1, 0, 0, 1]})) for _ in range(2))
    assert np.array_equal(first.waiting, other.waiting)
    assert first.handovers == other.handovers


def test_a_group_that_keeps_up_has_nothing_waiting(scripted: Any) -> None:
    """Unused speed of one partition goes to the others: at 60 % all is read in its step."""
    ran = run(world(traffic=Traffic(used=0.6)), scripted())
    assert not ran.waiting.any()
    assert RunFigures.of(ran, warm_up_s=0).max_s == 0


def test_an_overload_grows_by_what_is_too_much(scripted: Any) -> None:
    """At 150 % the backlog grows by half of what the group can do, and partitions lag alike."""
    ran = run(world(traffic=Traffic(used=1.5)), scripted())
    grown = ran.waiting[-1].sum() / (2 * 3600)
    assert grown == pytest.approx(100.0, rel=0.02)
    # A reader at 1 / 1.5 of what arrives falls behind by a third of each second.
    assert ran.time_lags()[-1] == pytest.approx(2 * 3600 / 3, rel=0.1)


def test_a_slow_member_does_its_share(scripted: Any) -> None:
    """A member at 40 % reads 40 records a second, while it is slow."""
    slow = (Slow(0, 0.4, until_s=3600.0),)
    ran = run(world(traffic=Traffic(used=0.6), slow=slow), scripted())
    waits = ran.waiting[:, [0, 2]].sum(axis=1)
    assert waits[360] / 3600 == pytest.approx(20.0, rel=0.05)
    assert waits[720] == 0


def test_what_moves_stands_still(scripted: Any) -> None:
    """A moved partition is not read for the pause; the others are."""
    ran = run(world(traffic=Traffic(used=0.2)), scripted({0: [1, 1, 0, 1]}), Cadence(pause_s=20))
    assert (ran.waiting[91:93, 0] > 0).all()
    assert ran.waiting[92, 0] > ran.waiting[91, 0]
    assert not ran.waiting[93:].any()
    assert not ran.waiting[:, 1:].any()
    assert [(h.at_s, h.planned, h.moved, h.paused) for h in ran.handovers] == [(900, True, 1, 1)]


def test_an_eager_group_stands_still_as_a_whole(scripted: Any) -> None:
    """Where a group rebalances eagerly, every partition stands still for a plan."""
    ran = run(world(traffic=Traffic(used=0.6), eager=True), scripted({0: [1, 1, 0, 1]}))
    assert (ran.waiting[91] > 0).all()
    assert ran.handovers[0].paused == 4


def test_commits_are_as_old_as_their_interval(scripted: Any) -> None:
    """The lag that is seen of a member that keeps up is what came since its last commit."""
    script = scripted()
    run(world(traffic=Traffic(used=0.6)), script)
    lags = np.concatenate([moment.problem.weights for moment in script.moments])
    assert 0 <= lags.min() <= lags.max() <= 30 * 5 * 2
    late = scripted()
    ran = run(world(traffic=Traffic(used=0.6), commits=CommitHabit(420.0)), late)
    looks = late.looks[-1]
    lag = looks.end - looks.committed
    assert lag.max() == pytest.approx(30 * 420, rel=0.2)
    assert lag.min() < 30 * 61
    assert (np.diff(looks.committed, axis=0) >= 0).all()
    assert not ran.waiting.any()


def test_commits_in_poll_wait_for_the_poll(scripted: Any) -> None:
    """At 100 records a second and 500 a poll of records five times as dear: every 25 s."""
    seen = {}
    for client in ("java", "aiokafka"):
        script = scripted()
        costs = TrueCosts(dear=(Dear(5.0),))
        overload = Traffic(used=1.5)
        run(world(traffic=overload, costs=costs, client=client), script, Cadence(10, 900, 10))
        looks = script.looks[-1]
        mine = looks.committed[-300:, looks.owner[-1] == 0].sum(axis=1)
        seen[client] = (np.diff(mine) > 0).mean()
    assert seen["aiokafka"] == 1
    assert seen["java"] == pytest.approx(10 / 25, abs=0.05)


def test_members_read_their_own_topics(scripted: Any) -> None:
    """Who reads what is in the problem, and a look's partitions are those of both topics."""
    script = scripted()
    run(world(topics=(2, 2), reads=((0,), (1,))), script)
    problem = script.moments[0].problem
    assert problem.subscription_topics.tolist() == [0, 1]
    assert problem.subscription_offsets.tolist() == [0, 1, 2]


def test_truth_is_in_work() -> None:
    """Who knows the truth knows what arrivals cost, and that no reader helps what crawls."""
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


def test_what_nobody_commits_is_read_again_by_the_next(scripted: Any) -> None:
    """Lag grows while the partition is read; whoever takes it over starts at the commit."""
    stuck = (Stuck(0, from_s=600.0),)
    script = scripted({3: [1, 1, 0, 1]})
    ran = run(world(traffic=Traffic(used=0.3), stuck=stuck), script)
    assert script.moments[2].problem.weights[0] == pytest.approx(15 * 2100, rel=0.1)
    assert ran.waiting[:360].max() == 0
    assert ran.waiting[361, 0] == pytest.approx(15 * 3000, rel=0.1)


def test_a_poisoned_partition_is_read_by_nobody(scripted: Any) -> None:
    """It waits whoever owns it, and is late in a figure of its own."""
    crawling = (Crawl(0, from_s=600.0),)
    ran = run(world(traffic=Traffic(used=0.3), crawling=crawling), scripted({3: [1, 1, 0, 1]}))
    course = RunFigures.of(ran, warm_up_s=0)
    assert ran.waiting[-1, 0] == pytest.approx(15 * 6600, rel=0.05)
    assert course.late == 0
    assert course.stuck == pytest.approx(110, abs=2)


def test_members_leave_and_come_back(scripted: Any) -> None:
    """What a member leaves goes to the others, who read it after the pause; and back again."""
    changes = (MemberChange(1200, 1, joins=False), MemberChange(1260, 1, joins=True))
    script = scripted()
    ran = run(world(traffic=Traffic(used=0.3), changes=changes), script)
    gone, back = ran.handovers
    assert (gone.at_s, gone.moved, gone.paused) == (1200, 0, 2)
    assert (back.at_s, back.moved, back.paused) == (1260, 2, 2)
    looks = script.looks[1]
    absent = looks.at - looks.at[-1] == 1200 - 1800
    assert looks.members == ("member-00", "member-01")
    assert set(looks.owner[absent].ravel()) == {0}


def test_a_topic_grows(scripted: Any) -> None:
    """New partitions are there for whoever looks from then on, and unknown before."""
    script = scripted()
    run(world(traffic=Traffic(used=0.3), topics=(4, 2), growth=(Growth(1200, 0, 6),)), script)
    before, after = script.looks[0], script.looks[1]
    assert (before.partitions, after.partitions) == (6, 8)
    assert (after.end[0, 4:6] == -1).all()
    assert (after.end[-1] > 0).all()
    assert script.moments[1].problem.partition_counts.tolist() == [6, 2]


def test_markers_are_lag_at_rest(scripted: Any) -> None:
    """The end of a transactional log is one beyond its last record, for ever."""
    script = scripted()
    run(world(traffic=Traffic(used=0.001), markers=True, commits=CommitHabit(1.0)), script)
    looks = script.looks[-1]
    lag = looks.end - looks.committed
    assert (lag.min(), np.median(lag)) == (1, 1)


def test_looks_are_kept_for_an_hour_and_then_thinned() -> None:
    """All looks of the last hour, one in a quarter of an hour before that."""
    moments: list[Any] = []

    class Watching(ByAssignor):
        def decide(self, moment: Any) -> None:
            moments.append(moment.looks())

    run(world(hours=3), Watching("range"))
    at = (moments[-1].at - moments[-1].at[-1]) / 60
    assert (np.diff(at[at >= -60]) == 1).all()
    assert at[at < -60].tolist() == list(range(-150, -60, 15))


def test_members_that_are_there_come_first_in_looks(scripted: Any) -> None:
    """Whoever has left stands behind them, as long as a look shows what it owned."""
    script = scripted()
    run(world(traffic=Traffic(used=0.3), changes=(MemberChange(1200, 0, joins=False),)), script)
    assert script.moments[1].problem.members == ("member-01",)
    assert script.looks[1].members == ("member-01", "member-00")
    assert set(script.looks[1].owner[0]) == {0, 1}
    assert set(script.looks[1].owner[-1]) == {0}
