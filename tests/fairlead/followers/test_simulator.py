"""Followers in simulated histories: what must hold in every one of them."""

import pytest

from fairlead.wire.record_reading import SKEW
from tests.fairlead.followers.simulator.history import Action, happen, quiet, run
from tests.fairlead.followers.simulator.interruption import Interruption, Line
from tests.fairlead.followers.simulator.logs import SimulatedPinLog
from tests.fairlead.followers.simulator.world import World
from tests.lengths import form

#: 100 of these take some six seconds on one core.
SEEDS = form(short=200, long=20_000)
BATCH = 100


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, SEEDS, BATCH))
def test_every_history_ends_well(first: int) -> None:
    """No two owners, honest status, and all on the newest plan once the faults have ended."""
    for seed in range(first, first + BATCH):
        run(seed)


def test_group_that_was_long_without_its_log_soon_follows_again() -> None:
    """What kept members out counts no more once it has ended: no waiting for minutes."""
    world = run(108_835)
    assert world.time < 120.0


def settled(*names: str) -> World:
    """Return a world in which these members follow a plan."""
    world = World(1)
    happen(world, Action(0.0, "publish"))
    for name in names:
        happen(world, Action(0.0, "start", name))
    quiet(world)
    world.longest_orphaned_s = 0.0
    return world


FAULTS = [
    "pins_accept",
    "pins_refuse",
    "pins_lose",
    "pins_doubt",
    "pins_away",
    "pins_delete",
    "pins_grow",
    "pins_lead",
    "pins_loseend",
    "plans_away",
    "plans_delete",
    "plans_grow",
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("delay_s", [0.0, 0.3, 0.6, 0.9])
def test_time_without_an_owner_is_bounded(fault: str, delay_s: float) -> None:
    """Whatever breaks just before or in the middle of a rebalance, ten seconds are the most."""
    world = settled("a", "b", "c")
    happen(world, Action(world.time, "start", "d"))
    world.run(world.time + delay_s)
    happen(world, Action(world.time, fault))
    world.run(world.time + 60.0)
    assert world.longest_orphaned_s < 10.0
    quiet(world)
    assert world.longest_orphaned_s < 10.0


def test_nothing_that_range_gave_is_ranges_share() -> None:
    """Where there are more members than partitions: nothing was ceded, nothing is waited for."""
    world = World(1)
    happen(world, Action(0.0, "pins_away"))
    happen(world, Action(0.0, "start", "a"))
    participant = world.members["a"].participant
    participant.begin(1, "a-1", ("t",), {})
    verdict = participant.step(0.0)
    assert verdict is not None
    participant.settle(verdict)
    status = participant.status(())
    assert status.rule == "range"
    assert str(status.fallback_reason).startswith("keeping what range gave: ")


def test_records_of_an_earlier_life_of_the_group_count_for_nothing() -> None:
    """The consumers live on, the group is deleted: its generations come again, its pins do not."""
    world = settled("a", "b")
    for what, names in (("unsubscribe", "ab"), ("delete_group", " "), ("subscribe", "ab")):
        for name in names:
            happen(world, Action(world.time, what, name))
        world.run(world.time + 1.0)
    assert world.coordinator.generation <= 2
    quiet(world)
    assert world.longest_orphaned_s < 5.0


def test_more_partitions_of_the_pin_topic_move_all_members_together() -> None:
    """While nothing else happens: within the time of a look everybody is in one place again."""
    world = settled("a", "b", "c")
    happen(world, Action(world.time, "pins_grow"))
    generation = world.coordinator.generation
    world.run(world.time + 40.0)
    assert generation < world.coordinator.generation <= generation + 3
    assert world.healed() is None
    logs = [member.participant._listener.log for member in world.members.values()]  # noqa: SLF001
    places = {log.number for log in logs if isinstance(log, SimulatedPinLog)}
    assert places == {world.pins.home()}


@pytest.mark.parametrize("fault", ["plans_delete", "plans_grow"])
def test_plans_of_a_topic_that_was_made_anew_or_has_grown_are_adopted(fault: str) -> None:
    """By members that live on, without anybody joining or leaving."""
    world = settled("a", "b")
    happen(world, Action(world.time, fault))
    world.run(world.time + 40.0)
    happen(world, Action(world.time, "plans_create"))
    happen(world, Action(world.time, "publish"))
    world.run(world.time + 60.0)
    assert world.healed() is None


def test_plan_that_had_lapsed_is_followed_again_when_it_is_told_again() -> None:
    """A group that rebalanced meanwhile is on range, and need not wait for another version."""
    world = settled("a", "b")
    world.lease_until = world.clock.utc() - SKEW
    happen(world, Action(world.time, "publish"))
    world.run(world.time + 10.0)
    assert world.healed() is not None
    world.lease_until = None
    world.tell()
    world.run(world.time + 10.0)
    assert world.healed() is None


def join_and_lose(interruption: Interruption | None) -> None:
    """Run a group through joins, a loss of its log and a new plan, interrupting one member."""
    world = World(3)
    happen(world, Action(0.0, "publish"))
    for name in "ab":
        happen(world, Action(0.0, "start", name))
    world.members["a"].interruption = interruption
    world.run(4.0)
    happen(world, Action(world.time, "publish"))
    world.run(7.0)
    happen(world, Action(world.time, "pins_lose"))
    happen(world, Action(world.time, "start", "c"))
    world.run(12.0)
    happen(world, Action(world.time, "pins_accept"))
    happen(world, Action(world.time, "pins_delete"))
    world.run(18.0)
    quiet(world)


def lines() -> dict[Line, int]:
    """Return how often each line is reached when nothing interrupts."""
    counting = Interruption()
    join_and_lose(counting)
    return counting.reached


@pytest.mark.long
@pytest.mark.parametrize("share", range(4))
def test_interruption_at_any_line_is_healed(share: int) -> None:
    """Raised out of `poll` at each line in turn, at its first time or in the middle of its life.

    There never are two owners, no plan is reported that is not owned, and the member follows the
    plan again.
    """
    reached = lines()
    assert len(reached) > 200
    for number, (line, times) in enumerate(sorted(reached.items())):
        if number % 4 != share:
            continue
        interruption = Interruption(line, 1 if number % 8 < 4 else (times + 1) // 2)
        join_and_lose(interruption)
        assert interruption.raised, line
