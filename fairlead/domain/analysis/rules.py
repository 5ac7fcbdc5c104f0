"""The rules of a policy that the analysis uses."""

from dataclasses import dataclass
from typing import Final

#: Number of plans whose times are remembered: more than the back-off counts.
MOST_PLANS: Final = 30


@dataclass(frozen=True)
class Rules:
    """Objective, horizon, and limits of plans.

    Parameters
    ----------
    objective_s
        Largest acceptable time lag.
    horizon_s
        Seconds ahead for which time lag is forecast.
    target_utilisation
        Target utilisation: largest planned arrivals over capacity of a member.
    move_downtime_s
        Seconds for which a moved partition is not read (move downtime).
    max_moves
        Maximum number of owned partitions that a plan moves; None: unlimited.
    cooldown_s
        Seconds without another plan after one took effect; None: until its effect shows.
    racks
        Whether plans reduce traffic between racks in a group within its objective.
    price_per_gb
        Price of a gigabyte between racks; None: unknown.
    least_saving_per_day
        Minimum daily saving of a plan that only reduces traffic, in the same currency.
    """

    objective_s: float = 60.0
    horizon_s: float = 1800.0
    target_utilisation: float = 0.95
    move_downtime_s: float = 10.0
    max_moves: int | None = None
    cooldown_s: float | None = None
    racks: bool = False
    price_per_gb: float | None = None
    least_saving_per_day: float = 0.0
