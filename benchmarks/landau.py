"""The workload by which Landau et al. compare assignment rules, and their figures.

Belongs here: partition speeds that take random steps, the R-score, and how long records wait. Does
not: their rules (`bin_packing`).

From "Kafka Consumer Group Autoscaler" (arXiv 2206.11170) and the sources published with it: 32
partitions of two topics whose speeds start anywhere between nothing and what is packed into a
consumer, and take a step of at most `delta` per cent of that every 30 s; a consumer can do a third
more than is packed into it; a partition that is moved is not read for 5 s. Speeds are in records
here, ten for each of their units, so that Poisson noise stays below a hundredth.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.simulation.loop import ScenarioRun
from benchmarks.simulation.scenario import CommitHabit, Scenario
from benchmarks.simulation.traffic import Traffic
from fairlead.simulation.loop import Cadence
from fairlead.simulation.world import Float64

#: Records a second that are packed into a consumer, and that it can do.
PACKED: Final = 1000.0
CAPACITY: Final = 1330.0
TURN_S: Final = 30.0
STEP_S: Final = 0.5
CADENCE: Final = Cadence(sample_s=TURN_S, decision_s=TURN_S, move_downtime_s=5.0)
_PARTITIONS: Final = (16, 16)


@dataclass(frozen=True)
class Walk(Traffic):
    """Every partition's rate takes a random step each turn, between nothing and what is packed.

    Parameters
    ----------
    most
        The largest step, up or down, in records a second: steps are even up to it.
    """

    most: float = 0.0

    def rates(self, at: Float64, exists: npt.NDArray[np.bool_], capacity: float) -> Float64:
        """Return records a second, whatever exists and whatever the machines can do."""
        del capacity
        rng = np.random.default_rng(self.shuffle)
        partitions = exists.shape[1]
        turn = (at // TURN_S).astype(np.int64)
        rates = np.empty((int(turn.max(initial=0)) + 1, partitions))
        rates[0] = rng.uniform(0.0, PACKED, partitions)
        steps = rng.uniform(-self.most, self.most, rates.shape)
        for number in range(1, len(rates)):
            rates[number] = np.clip(rates[number - 1] + steps[number], 0.0, PACKED)
        walked: Float64 = rates[turn]
        return walked


def landau(delta: float, members: int, *, shuffle: int = 0) -> Scenario:
    """Return the workload.

    Parameters
    ----------
    delta
        The largest step, in per cent of what is packed into a consumer.
    members
        How many consumers there are.
    shuffle
        Seed of the steps.
    """
    return Scenario(
        name=f"landau-{delta:g}",
        what=f"partition speeds that wander by up to {delta:g} % of a consumer every 30 s",
        kind="changing",
        traffic=Walk(most=PACKED * delta / 100, shuffle=shuffle),
        speeds=(CAPACITY,) * members,
        topics=_PARTITIONS,
        commits=CommitHabit(1.0),
    )


@dataclass(frozen=True)
class Score:
    """What a rule came to.

    Parameters
    ----------
    p50_s, p99_s
        How long records waited, of all records.
    r_score
        What is moved at a decision, in consumers' capacities, on average.
    plans, moves
        Published, and partitions that they moved.
    """

    p50_s: float
    p99_s: float
    r_score: float
    plans: int
    moves: int

    @classmethod
    def of(cls, run: ScenarioRun, *, warm_up_s: float = 10 * TURN_S) -> "Score":
        """Measure a run, after a warm-up."""
        world = run.world
        waited, records = record_delays(run)
        first = round(warm_up_s / world.step_s)
        p50, p99 = _quantiles(waited[first:].ravel(), records[first:].ravel(), (0.5, 0.99))
        plans = [h for h in run.handovers if h.planned and h.at_s >= warm_up_s]
        moved_rates = [
            world.rates[round(at_s / world.step_s), before != after].sum()
            for (_, before), (at_s, after) in pairwise(run.owners)
            if at_s >= warm_up_s
        ]
        decisions = (world.steps - first) * world.step_s / run.cadence.decision_s
        moved = float(sum(moved_rates)) / CAPACITY
        return cls(
            p50_s=round(p50, 2),
            p99_s=round(p99, 2),
            r_score=round(moved / decisions, 4),
            plans=len(plans),
            moves=sum(plan.moved for plan in plans),
        )


def members_used(run: ScenarioRun, *, warm_up_s: float = 10 * TURN_S) -> float:
    """Return how many consumers were given something, on average over time."""
    end = run.world.steps * run.world.step_s
    since = [at for at, _ in run.owners]
    lengths = np.diff(np.maximum([*since, end], warm_up_s))
    used = [np.unique(owner[owner >= 0]).size for _, owner in run.owners]
    return float(np.average(used, weights=lengths))


def record_delays(run: ScenarioRun) -> tuple[Float64, Float64]:
    """Return how long what arrived in each step waited, and how many records that is, (N, P).

    What is still unread at the end has waited until then at least, and counts as that.
    """
    world = run.world
    positions = world.ends - run.waiting
    now = np.arange(1, world.steps + 1)
    waited = np.zeros((world.steps, world.partitions))
    for partition in range(world.partitions):
        ends = world.ends[1:, partition]
        # A position is a difference of large numbers: half a record is no record.
        read = np.searchsorted(positions[:, partition], ends - 0.5, side="left")
        waited[:, partition] = np.maximum(read - now, 0) * world.step_s
    return waited, world.arrivals.astype(np.float64)


def _quantiles(values: Float64, weights: Float64, shares: tuple[float, ...]) -> list[float]:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    at = np.searchsorted(below, np.array(shares) * below[-1])
    return [float(value) for value in values[order][np.minimum(at, values.size - 1)]]
