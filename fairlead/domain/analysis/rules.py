"""The rules of a policy that the analysis uses."""

from dataclasses import dataclass
from typing import Final

#: Number of plans whose times are remembered: more than the back-off counts.
MOST_PLANS: Final = 30


@dataclass(frozen=True)
class Rules:
    """Objective, horizon, and limits of plans."""

    #: Seconds. Largest acceptable time lag.
    objective_s: float = 60.0
    #: Seconds ahead for which time lag is forecast.
    horizon_s: float = 1800.0
    #: Largest planned arrivals over capacity of a member.
    target_utilisation: float = 0.95
    #: Seconds for which a moved partition is not read (move downtime).
    move_downtime_s: float = 10.0
    #: Maximum number of owned partitions that a plan moves; None: unlimited.
    max_moves: int | None = None
    #: Seconds without another plan after one took effect; None: until its effect shows.
    cooldown_s: float | None = None
    #: Whether plans reduce traffic between racks in a group within its objective.
    racks: bool = False
    #: Price of a gigabyte between racks; None: unknown.
    price_per_gb: float | None = None
    #: Minimum daily saving of a plan that only reduces traffic, in the same currency.
    least_saving_per_day: float = 0.0
