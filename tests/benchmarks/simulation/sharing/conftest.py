"""One consumer of one client that cannot keep up, as it was measured on a real broker."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.commits import ScenarioCommits
from benchmarks.simulation.reading import ScenarioReading
from benchmarks.simulation.scenario import Scenario
from benchmarks.simulation.traffic import Traffic
from benchmarks.simulation.world import ScenarioWorld
from fairlead.simulation.world import Float64, Int64

STEP_S = 0.25
SAMPLE_S = 15.0


@dataclass(frozen=True)
class Alone:
    """What one consumer did: N steps of P partitions, those that get most first.

    Parameters
    ----------
    read, arrived
        Records in each step, shape (N, P).
    waiting
        At the start of each step and at the end, shape (N + 1, P).
    committed, ahead
        At looks every 15 s, the first at the start, shape (L, P): offsets, and by how much they
        are beyond what has been read.
    """

    read: Float64
    arrived: Int64
    waiting: Float64
    committed: Int64
    ahead: Float64

    def turns(self) -> list[tuple[int, int, int, float]]:
        """Return turns: partition, first step, step behind the last, records; in order."""
        found = []
        for partition in range(self.read.shape[1]):
            reads = np.concatenate(([0], self.read[:, partition] > 1e-6, [0])).astype(int)
            edges = np.flatnonzero(np.diff(reads)).reshape(-1, 2)
            for first, last in edges.tolist():
                records = float(self.read[first:last, partition].sum())
                found.append((partition, first, last, records))
        return sorted(found, key=lambda turn: turn[1])

    def runs(self) -> Float64:
        """Return how many records were read of one partition in a row, run by run."""
        return np.array([records for *_, records in self.turns()])

    def moves(self) -> Int64:
        """Return by how much commits moved from look to look."""
        return np.diff(self.committed, axis=0)

    def shares(self, first: float = 0.5) -> Float64:
        """Return what was read of what arrived, in the last part of the run, shape (P,)."""
        since = round(first * len(self.read))
        return np.asarray(self.read[since:].sum(axis=0) / self.arrived[since:].sum(axis=0))


def consume(
    client: str,
    *,
    zipf: float = 1.0,
    partitions: int = 12,
    arrive: float = 200.0,
    per_s: float = 85.0,
    seconds: float = 150.0,
    behind_s: float = 0.0,
    seed: int = 0,
    **changes: Any,
) -> Alone:
    """Let one consumer begin `behind_s` seconds of arrivals behind."""
    scenario = Scenario(
        "alone",
        "one consumer that cannot keep up",
        "hopeless",
        Traffic(used=arrive / per_s, zipf=zipf),
        speeds=(per_s,),
        topics=(partitions,),
        client=client,
        **changes,
    )
    world = ScenarioWorld.of(scenario, seed=seed, hours=seconds / 3600, step_s=STEP_S)
    backlog = np.rint(world.rates[0] * behind_s)
    world = replace(world, waiting=backlog, first=backlog.astype(np.int64))
    reading = ScenarioReading(world)
    reading.owner = np.zeros(partitions, np.int32)
    commits = ScenarioCommits(reading)
    committed, ahead = [commits.at(0)], [np.zeros(partitions)]
    look = round(SAMPLE_S / STEP_S)
    for first in range(0, world.steps, look):
        last = min(first + look, world.steps)
        reading.run(first, last)
        committed.append(commits.at(last))
        ahead.append(committed[-1] - (world.ends[last] - reading.waiting[last]))
    order = np.argsort(-world.rates[0], kind="stable")
    read = reading.waiting[:-1] + world.arrivals - reading.waiting[1:]
    return Alone(
        read[:, order],
        world.arrivals[:, order],
        reading.waiting[:, order],
        np.array(committed)[:, order],
        np.array(ahead)[:, order],
    )


@pytest.fixture
def alone() -> Callable[..., Alone]:
    """Run one consumer that cannot keep up."""
    return consume
