"""Histories of groups whose leader decides, as those of `history`: drawn from a seed, and run."""

import random
from collections.abc import Sequence

from tests.fairlead.followers.simulator.history import NAMES, Action
from tests.fairlead.followers.simulator.led_world import LedWorld
from tests.fairlead.followers.simulator.timeline import ViolationError

LENGTH_S = 30.0
#: How long a group may take once every fault has ended: readers pause for 30 s where they could not
#: connect, look for a grown topic every 30 s, and notice a deleted one as late.
HEALS_WITHIN_S = 120.0
#: How long a partition may have no owner then: a member that is gone is waited for through a
#: session, then those who join are through a rebalance, and the plan.
OWNED_WITHIN_S = 15.0
#: How long it is to stay as it is then.
RESTS_S = 3.0

#: What happens, and how often.
WEIGHTS = {
    "start": 10,
    "stop": 5,
    "kill": 4,
    "freeze": 4,
    "freeze_leader": 3,
    "thaw": 8,
    "stall": 3,
    "resume": 5,
    "blind": 3,
    "sighted": 5,
    "plain": 2,
    "publish": 7,
    "retire": 1,
    "withdraw": 1,
    "renew": 2,
    "garbage": 2,
    "plans_away": 2,
    "plans_back": 5,
    "plans_delete": 1,
    "plans_create": 4,
    "plans_grow": 1,
    "coordinator_away": 1,
    "coordinator_back": 4,
    "coordinator_move": 2,
    "delete_group": 1,
}
#: What makes a group rebalance.
CHANGES = ("start", "stop", "kill", "plain", "publish")


def draw(seed: int) -> list[Action]:
    """Return the history of a seed."""
    rng = random.Random(seed)
    first = [Action(rng.uniform(0, 2), "start", name) for name in NAMES[: rng.randint(1, 4)]]
    if rng.random() < 0.8:
        first.append(Action(0.0, "publish"))
    moments = [rng.uniform(2, LENGTH_S) for _ in range(rng.randint(1, 4))]
    first += [Action(at, rng.choice(CHANGES), rng.choice(NAMES)) for at in moments]
    rest = [
        Action(
            rng.choice(moments) + rng.expovariate(2) if rng.random() < 0.6 else at,
            what,
            rng.choice(NAMES),
        )
        for what in rng.choices(list(WEIGHTS), list(WEIGHTS.values()), k=rng.randint(0, 25))
        for at in [rng.uniform(1, LENGTH_S)]
    ]
    return sorted([*first, *rest], key=lambda action: action.at)


def happen(world: LedWorld, action: Action) -> None:
    """Let something happen."""
    part, _, what = action.what.partition("_")
    if part == "plans":
        world.happen_to_plans(what)
    elif part == "coordinator":
        if what == "move":
            world.coordinator.move()
        else:
            world.coordinator.reachable = what == "back"
    elif action.what in {"publish", "retire", "withdraw", "garbage", "freeze_leader"}:
        getattr(world, action.what)()
    elif action.what == "renew":
        world.tell()
    elif action.what == "delete_group":
        world.coordinator.delete()
    else:
        _happen_to_member(world, action.what, action.name)


def _happen_to_member(world: LedWorld, what: str, name: str) -> None:
    member = world.members.get(name)
    match what:
        case "start" | "plain":
            world.start(name, plain=what == "plain")
        case "stop":
            world.stop(name)
        case "kill":
            world.kill(name)
        case "freeze" | "thaw" if member:
            member.frozen = what == "freeze"
        case "stall" | "resume" if member:
            member.stalled = what == "stall"
        case "blind" | "sighted" if member:
            member.blind = what == "blind"


def run(seed: int, actions: Sequence[Action] | None = None) -> LedWorld:
    """Run a history to its end; raises ViolationError."""
    world = LedWorld(seed)
    for action in draw(seed) if actions is None else actions:
        world.run(action.at)
        happen(world, action)
    world.run(max(LENGTH_S, world.time))
    quiet(world)
    return world


def quiet(world: LedWorld) -> None:
    """End every fault, and see the group heal and stay so."""
    for what in ("plans_back", "plans_create", "coordinator_back"):
        happen(world, Action(world.time, what))
    if world.withdrawn:
        world.publish()
    world.tell(forever=True)
    for member in world.members.values():
        member.frozen = member.stalled = member.blind = False
    ended_at = world.time
    world.longest_orphaned_s = 0.0
    if world.orphaned_since is not None:
        world.orphaned_since = ended_at
    healed_at: float | None = None
    while healed_at is None or world.time < healed_at + RESTS_S:
        if not world.members:  # or all were refused: they have no protocol in common
            world.start("a")
        world.run(world.time + 1.0)
        problem = world.healed()
        if problem is not None and world.time > ended_at + HEALS_WITHIN_S:
            raise ViolationError(f"not healed after {HEALS_WITHIN_S:.0f} s: {problem}")
        healed_at = None if problem is not None else healed_at or world.time
    if world.longest_orphaned_s > OWNED_WITHIN_S:
        raise ViolationError(f"no owner for {world.longest_orphaned_s:.1f} s: {world.state()}")
