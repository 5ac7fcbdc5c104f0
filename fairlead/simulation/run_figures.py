"""What came of a run: how late partitions were, and what that took.

Belongs here: figures of a run. Does not: comparing runs (`benchmarks`, the command line).
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairlead.simulation.loop import Run
from fairlead.simulation.traffic import Float64

#: Later than this is late, seconds.
LATE_S = 60.0
#: What happens before is not counted, seconds: whoever decides has to see something first.
WARM_UP_S = 6 * 3600.0


@dataclass(frozen=True)
class RunFigures:
    """Figures of a run, after its warm-up; plans and moves are those of all of it.

    Parameters
    ----------
    late
        Partition-minutes more than the objective behind; partitions that crawl apart.
    stuck
        The same, of those partitions.
    p99_s, max_s
        Of all partitions at all moments: how far behind, seconds.
    plans, moves
        Published, and partitions that plans moved.
    taken_back
        Plans that were, since they had made it worse.
    rebalances, rebalance_moves
        Because members or partitions came or went, and what they moved of members that stayed.
    pauses
        Partitions that stood still, counted each time.
    """

    late: float
    stuck: float
    p99_s: float
    max_s: float
    plans: int
    moves: int
    rebalances: int
    rebalance_moves: int
    pauses: int
    taken_back: int = 0

    @classmethod
    def of(cls, run: Run, *, late_s: float = LATE_S, warm_up_s: float = WARM_UP_S) -> "RunFigures":
        """Measure a run."""
        world = run.world
        first = min(round(warm_up_s / world.step_s), world.steps)
        behind = time_lags(run)[first + 1 :]
        minutes = world.step_s / 60
        ill, counts = np.isfinite(world.limits[first:]), world.exists[first:]
        late = (behind > late_s) & counts
        healthy = behind[counts & ~ill]
        plans = [handover for handover in run.handovers if handover.planned]
        back = sum(handover.back for handover in run.handovers)
        others = [handover for handover in run.handovers if not (handover.planned or handover.back)]
        return cls(
            late=round(float((late & ~ill).sum() * minutes), 1),
            stuck=round(float((late & ill).sum() * minutes), 1),
            p99_s=float(np.percentile(healthy, 99)) if healthy.size else 0.0,
            max_s=float(healthy.max(initial=0.0)),
            plans=len(plans),
            moves=sum(plan.moved for plan in plans),
            rebalances=len(others),
            rebalance_moves=sum(other.moved for other in others),
            pauses=sum(handover.paused for handover in run.handovers),
            taken_back=back,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def time_lags(run: Run) -> Float64:
    """How far behind each partition is: how long ago the log's end was where its reader is now.

    Returns
    -------
    Seconds, float64 of shape (N + 1, P); 0 where nothing waits.
    """
    world = run.world
    positions = world.ends - run.waiting
    now = np.arange(world.steps + 1)
    behind = np.zeros(positions.shape)
    for partition in np.flatnonzero((run.waiting > 0).any(axis=0)).tolist():
        ends = world.ends[:, partition]
        unread = np.searchsorted(ends, positions[:, partition], side="right")
        steps = np.where(run.waiting[:, partition] > 0, now - unread + 1, 0)
        behind[:, partition] = np.maximum(steps, 0) * world.step_s
    return behind
