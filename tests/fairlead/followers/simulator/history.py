"""Random sequences of events for a simulated group, reproducible from a seed.

`FollowingMember`, `PlanReader` and the code they use are real; clock, topics, coordinator and
client are models. `logs` models topics, `coordinator` the group's coordinator, `member` one
consumer; `world` combines them and checks the invariants after each step.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.fairlead.followers.simulator.coordinator import REBALANCE_S
from tests.fairlead.followers.simulator.hostile import forge, garbage
from tests.fairlead.followers.simulator.world import ViolationError, World

LENGTH_S = 40.0
#: Maximum seconds until a group has recovered from the last fault.
HEALS_WITHIN_S = 900.0
NAMES = "abcd"


@dataclass(frozen=True)
class Action:
    """An event.

    Parameters
    ----------
    at
        Time in seconds.
    what
        Kind of event: a key of `WEIGHTS`, or "forge".
    name
        The affected member; "": none.
    """

    at: float
    what: str
    name: str = ""


#: Relative frequency of each event.
WEIGHTS = {
    "start": 10,
    "stop": 5,
    "kill": 3,
    "unsubscribe": 2,
    "subscribe": 4,
    "freeze": 4,
    "thaw": 8,
    "plain": 2,
    "publish": 6,
    "agreement_refuse": 2,
    "agreement_lose": 2,
    "agreement_doubt": 2,
    "agreement_slow": 4,
    "agreement_accept": 8,
    "agreement_away": 2,
    "agreement_back": 6,
    "agreement_lead": 2,
    "agreement_loseend": 4,
    "agreement_delete": 1,
    "agreement_grow": 1,
    "plans_away": 2,
    "plans_back": 6,
    "plans_delete": 1,
    "plans_create": 4,
    "plans_grow": 1,
    "coordinator_away": 1,
    "coordinator_back": 5,
    "delete_group": 2,
    "garbage": 2,
}
#: Events that cause a rebalance.
CHANGES = ("start", "stop", "kill", "plain", "publish")


def draw(seed: int) -> list[Action]:
    """Return the events that a seed produces, in order of time."""
    rng = random.Random(seed)
    first = [Action(rng.uniform(0, 2), "start", name) for name in NAMES[: rng.randint(1, 4)]]
    if rng.random() < 0.8:
        first.append(Action(0.0, "publish"))
    kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
    if rng.random() < 0.05:
        kinds, weights = [*kinds, "forge"], [*weights, 10]
    # Half of the other events happen soon after one of `CHANGES`, to hit the short rebalances.
    moments = [rng.uniform(2, LENGTH_S) for _ in range(rng.randint(1, 4))]
    first += [Action(at, rng.choice(CHANGES), rng.choice(NAMES)) for at in moments]
    rest = [
        Action(
            rng.choice(moments) + rng.expovariate(2) if rng.random() < 0.5 else at,
            what,
            rng.choice(NAMES),
        )
        for what in rng.choices(kinds, weights, k=rng.randint(0, 25))
        for at in [rng.uniform(1, LENGTH_S)]
    ]
    return sorted([*first, *rest], key=lambda action: action.at)


def happen(world: World, action: Action) -> None:
    """Carry out an event."""
    part, _, what = action.what.partition("_")
    if part == "agreement":
        _happen_to_agreement(world, what)
    elif part == "plans":
        world.happen_to_plans(what)
    elif part == "coordinator":
        world.coordinator.reachable = what == "back"
    elif action.what in {"garbage", "forge"}:
        world.safe = world.safe and action.what == "garbage"
        (garbage if action.what == "garbage" else forge)(world)
    elif action.what == "publish":
        world.publish()
    elif action.what == "delete_group":
        world.coordinator.delete()
    else:
        _happen_to_member(world, action.what, action.name)


def _happen_to_member(world: World, what: str, name: str) -> None:
    match what:
        case "start" | "plain":
            world.start(name, plain=what == "plain")
        case "stop":
            world.stop(name)
        case "kill":
            world.kill(name)
        case "subscribe" | "unsubscribe":
            if name in world.members:
                world.members[name].subscribe(wanted=what == "subscribe")
        case "freeze" | "thaw":
            if name in world.members:
                world.members[name].frozen = what == "freeze"
        case _:
            raise ValueError(what)


def _happen_to_agreement(world: World, what: str) -> None:
    agreement_topic = world.agreement_topic
    match what:
        case "refuse" | "lose" | "doubt":
            agreement_topic.writes = {"refuse": "refused", "lose": "lost", "doubt": "doubtful"}[
                what
            ]
        case "slow":
            agreement_topic.delay_s = world.rng.choice([0.05, 0.3, 1.0])
        case "accept":
            agreement_topic.writes, agreement_topic.delay_s = "ok", 0.005
        case "away" | "back":
            agreement_topic.reachable = what == "back"
        case "lead" | "loseend":
            for partition in agreement_topic.partitions or ():
                partition.lead(lose=world.rng.randint(1, 4) if what == "loseend" else 0)
        case "delete":
            agreement_topic.delete()
        case "grow":
            agreement_topic.grow()
        case _:
            raise ValueError(what)


def run(seed: int, actions: Sequence[Action] | None = None) -> World:
    """Run a history until the group has recovered; raise ViolationError if a check fails."""
    world = World(seed)
    for action in draw(seed) if actions is None else actions:
        world.run(action.at)
        happen(world, action)
    world.run(max(LENGTH_S, world.time))
    quiet(world)
    return world


def quiet(world: World) -> None:
    """End every fault, and wait until the group has recovered."""
    for what in (
        "agreement_accept",
        "agreement_back",
        "plans_back",
        "plans_create",
        "coordinator_back",
    ):
        happen(world, Action(world.time, what))
    world.tell()
    for member in world.members.values():
        member.frozen = False
        member.subscribe(wanted=True)
    if not world.safe:  # forged records may mislead members for two generations
        world.coordinator.disturb()
        world.run(world.time + 2 * REBALANCE_S)
        world.coordinator.disturb()
    if not world.members:
        world.start("a")
    ended_at = world.time
    while (problem := world.healed()) is not None:
        if world.time > ended_at + HEALS_WITHIN_S:
            raise ViolationError(f"not healed after {HEALS_WITHIN_S:.0f} s: {problem}")
        world.run(world.time + 1.0)
