"""Followers whose leader decides, in simulated histories: what must hold in every one of them."""

import pytest

from tests.fairlead.followers.simulator.history import Action
from tests.fairlead.followers.simulator.led_history import (
    HEALS_WITHIN_S,
    OWNED_WITHIN_S,
    happen,
    quiet,
    run,
)
from tests.fairlead.followers.simulator.led_world import EVERYTHING, LedWorld
from tests.lengths import form

#: 100 of these take some one and a half seconds on one core.
SEEDS = form(short=300, long=20_000)
BATCH = 100


@pytest.mark.long
@pytest.mark.parametrize("first", range(1, SEEDS, BATCH))
def test_every_history_ends_well(first: int) -> None:
    """No two owners, honest status, and all on the newest plan once the faults have ended."""
    for seed in range(first, first + BATCH):
        run(seed)


def group(*names: str, static: float = 0.0, cooperative: float = 0.0) -> LedWorld:
    """Return a world in which these members have joined, the first one as the leader."""
    world = LedWorld(1)
    world.static, world.cooperative, world.leased = static, cooperative, False
    for name in names:
        let(world, "start", name)
        world.run(world.time + 3.0)
    return world


def let(world: LedWorld, *whats: str) -> None:
    """Let something happen now, to a member if one is named."""
    happen(world, Action(world.time, *whats))


def followed(world: LedWorld) -> set[int | None]:
    """Return which plans members report."""
    return {
        member.follower.status().plan_version
        for member in world.members.values()
        if member.follower
    }


def test_plan_that_had_lapsed_is_followed_again_when_it_is_told_again() -> None:
    """A group that rebalanced meanwhile is on range, and need not wait for another version."""
    world = group("a", "b")
    world.leased = True
    let(world, "publish")
    world.run(world.time + 8.0)
    assert followed(world) == {1}
    world.run(world.time + 8.0)
    let(world, "start", "c")
    world.run(world.time + 4.0)
    assert followed(world) == {None}
    let(world, "renew")
    world.run(world.time + 4.0)
    assert followed(world) == {1}


def test_static_leader_that_starts_again_makes_good_for_what_it_had_not_read() -> None:
    """It is not told that it leads; all the others take the newest plan for adopted."""
    world = group("a", static=1.0)
    let(world, "blind", "a")
    let(world, "publish")
    let(world, "start", "b")
    world.run(world.time + 5.0)
    assert followed(world) == {None}
    let(world, "stop", "a")
    let(world, "start", "a")
    world.run(world.time + 5.0)
    assert followed(world) == {1}


@pytest.mark.parametrize("cooperative_again", [1.0, 0.0])
def test_static_member_that_starts_again_between_two_rounds_has_the_second_one_held(
    cooperative_again: float,
) -> None:
    """What its former life was to give up is nobody's, and it does not know that it had it.

    It may come back eager, which tells the coordinator nothing new by what it owns.
    """
    world = group("c", "a", static=1.0, cooperative=1.0)
    world.version = 1
    let(world, "publish")
    world.run(world.time + 5.0)
    assert world.members["a"].share == EVERYTHING
    let(world, "publish")  # the first plan gave a everything, this one gives c the half
    while world.members["a"].generation == world.members["c"].generation:
        world.run(world.time + 0.01)
    while world.coordinator.state != "stable":
        world.run(world.time + 0.01)
    assert world.members["a"].share == EVERYTHING
    let(world, "kill", "a")
    world.cooperative = cooperative_again
    let(world, "start", "a")
    world.run(world.time + 5.0)
    assert world.healed() is None
    assert world.members["c"].share == {0, 3, 4}


@pytest.mark.parametrize("cooperative", [0.0, 1.0])
@pytest.mark.parametrize("static", [0.0, 1.0])
@pytest.mark.parametrize("delay_s", [0.2, 0.5, 0.8, 1.4])
def test_leader_that_stops_amid_a_join_leaves_nothing_unowned_for_long(
    cooperative: float, static: float, delay_s: float
) -> None:
    """The coordinator's deadlines are what it takes: one of a session, and one of a rebalance."""
    world = group("a", "b", "c", static=static, cooperative=cooperative)
    let(world, "publish")
    let(world, "start", "d")
    world.run(world.time + delay_s)
    let(world, "freeze_leader")
    world.longest_orphaned_s = 0.0
    world.run(world.time + 30.0)
    assert world.longest_orphaned_s < OWNED_WITHIN_S
    quiet(world)
    assert world.time < HEALS_WITHIN_S
