"""What a policy asks of the analysis, free of how policies are written down."""

from dataclasses import dataclass
from typing import Final

#: Of so many plans is remembered when they took effect.
MOST_PLANS: Final = 30


@dataclass(frozen=True)
class Rules:
    """How late is too late, how far ahead is looked, and what a plan may cost.

    Parameters
    ----------
    objective_s
        So many seconds a partition may be behind.
    horizon_s
        So many seconds ahead lateness is forecast.
    headroom
        How full a member may be planned to be: arrivals over capacity.
    pause_s
        For how many seconds a partition stands still that is moved.
    max_moves
        Owned partitions that a plan moves at most; None: as many as pay.
    cooldown_s
        After a plan took effect there is no other for so long; None: until its effect shows.
    racks
        Whether traffic between racks counts, once a group is within its objective.
    price_per_gb
        What a gigabyte between racks costs; None: not known.
    least_saving_per_day
        What a plan for racks alone saves a day, at least, in the same money.
    """

    objective_s: float = 60.0
    horizon_s: float = 1800.0
    headroom: float = 0.95
    pause_s: float = 10.0
    max_moves: int | None = None
    cooldown_s: float | None = None
    racks: bool = False
    price_per_gb: float | None = None
    least_saving_per_day: float = 0.0
