"""Figures of a run, such as how long time lags were above the objective, plans and moves."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.simulation.loop import ScenarioRun, TakenBack

#: Seconds. The objective: no partition should have a larger time lag.
OBJECTIVE_S = 60.0
#: Seconds at the start that are not counted, because controllers first need some samples.
WARM_UP_S = 6 * 3600.0


@dataclass(frozen=True)
class RunFigures:
    """Figures of a run. Time lags are from after the warm-up, all counts from the whole run.

    Parameters
    ----------
    over_objective
        How many minutes partitions had a time lag above the objective, summed over all partitions
        except throttled ones.
    stuck
        Like `over_objective`, but for throttled partitions only.
    p99_s, max_s
        99th percentile and maximum, over all partitions and times, of the time lags of partitions
        that are not throttled, in seconds.
    plans, moves
        Number of published plans, and of partitions that they moved.
    rolled_back
        Number of plans that were rolled back after a regression.
    rebalances, rebalance_moves
        Number of rebalances after members or partitions changed, and of partitions moved in them.
    pauses
        Number of times that a partition paused.
    """

    over_objective: float
    stuck: float
    p99_s: float
    max_s: float
    plans: int
    moves: int
    rebalances: int
    rebalance_moves: int
    pauses: int
    rolled_back: int = 0

    @classmethod
    def of(cls, run: ScenarioRun, *, warm_up_s: float = WARM_UP_S) -> "RunFigures":
        """Measure a run."""
        world = run.world
        first = min(round(warm_up_s / world.step_s), world.steps)
        behind = run.time_lags()[first + 1 :]
        minutes = world.step_s / 60
        ill, counts = np.isfinite(world.limits[first:]), world.exists[first:]
        late = (behind > OBJECTIVE_S) & counts
        healthy = behind[counts & ~ill]
        plans = [handover for handover in run.handovers if handover.planned]
        back = [handover for handover in run.handovers if isinstance(handover, TakenBack)]
        others = [each for each in run.handovers if not (each.planned or each in back)]
        return cls(
            over_objective=round(float((late & ~ill).sum() * minutes), 1),
            stuck=round(float((late & ill).sum() * minutes), 1),
            p99_s=float(np.percentile(healthy, 99)) if healthy.size else 0.0,
            max_s=float(healthy.max(initial=0.0)),
            plans=len(plans),
            moves=sum(plan.moved for plan in plans),
            rebalances=len(others),
            rebalance_moves=sum(other.moved for other in others),
            pauses=sum(handover.paused for handover in run.handovers),
            rolled_back=len(back),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)
