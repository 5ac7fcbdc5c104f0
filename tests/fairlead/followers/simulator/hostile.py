"""Hostile writers of the coordination topic: invalid and forged records."""

import json
import random
from typing import Any

from fairlead.wire.agreement import Announcement, AssignmentRecord, Record, decode, encode
from tests.fairlead.followers.simulator.member import TOPIC
from tests.fairlead.followers.simulator.world import World

VALUES: tuple[Any, ...] = (None, True, -1, 2**70, 1.5, "", "x" * 2000, [], [1], {}, {"": ""}, "0-9")


def spoilt(rng: random.Random, record: Record) -> bytes:
    """Return an encoded record in which one value, at any depth, was replaced or removed."""
    values = json.loads(encode(record))
    where: Any = values
    while True:
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        key = rng.choice(keys)
        if not isinstance(where[key], (dict, list)) or not where[key] or rng.random() < 0.4:
            break
        where = where[key]
    if isinstance(where, dict) and rng.random() < 0.2:
        del where[key]
    else:
        where[key] = rng.choice([*VALUES, "0-999999", "5-1", {"t": 1}, [["t"]]])
    return json.dumps(values).encode()


def forged(rng: random.Random, generation: int, members: list[str]) -> Record:
    """Return a record that a member could have written, but did not."""
    member = rng.choice([*members, "nobody"])
    numbers = tuple(sorted(rng.sample(range(8), rng.randint(0, 4))))
    if rng.random() < 0.5:
        return Announcement(generation, member, member, (TOPIC,), {TOPIC: numbers}, log="life-0")
    return AssignmentRecord(
        generation, member, (TOPIC,), {member: {TOPIC: numbers}}, 99, log="life-0"
    )


def garbage(world: World) -> None:
    """Write some invalid records."""
    rng, partitions = world.rng, world.agreement_topic.partitions
    generation = world.coordinator.generation
    for partition in partitions or ():
        for _ in range(5):
            record = forged(rng, generation + rng.choice([0, 1]), list(world.coordinator.members))
            value = rng.choice([rng.randbytes(20), b"{}", spoilt(rng, record)])
            if decode(value) is None:  # the changed record may be valid by chance
                partition.records.append((partition.epoch, value))


def forge(world: World) -> None:
    """Write some forged records."""
    rng, partitions = world.rng, world.agreement_topic.partitions
    for partition in partitions or ():
        for _ in range(5):
            generation = world.coordinator.generation + rng.choice([0, 1])
            record = forged(rng, generation, list(world.coordinator.members))
            partition.records.append((partition.epoch, encode(record)))
