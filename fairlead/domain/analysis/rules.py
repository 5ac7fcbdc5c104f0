"""A policy's rules, as the analysis uses them."""

from dataclasses import dataclass
from typing import Final

#: The times of this many plans are remembered. With this many recent plans, the wait for the next
#: plan is the longest possible (`thresholds.WEEK_S`).
MOST_PLANS: Final = 30


@dataclass(frozen=True)
class Rules:
    """Objective and horizon of a group, and limits of its plans."""

    #: Seconds. Largest acceptable time lag.
    objective_s: float = 60.0
    #: Seconds ahead for which time lag is forecast.
    horizon_s: float = 1800.0
    #: Utilisation of a member (its arrivals divided by its capacity) that a plan should not exceed.
    target_utilisation: float = 0.95
    #: Seconds for which a moved partition is not read (move downtime).
    move_downtime_s: float = 10.0
    #: Maximum number of owned partitions that a plan moves; None: unlimited.
    max_moves: int | None = None
    #: Minimum number of seconds from the time a plan took effect to the next plan. None: the next
    #: plan may be made as soon as samples show the effect of the last one.
    cooldown_s: float | None = None
    #: Whether plans also reduce traffic between racks, even if the group is within its objective.
    racks: bool = False
    #: Price of a gigabyte of traffic between racks; None: unknown.
    price_per_gb: float | None = None
    #: Minimum daily saving of a plan that only reduces rack traffic, in the currency of the price.
    least_saving_per_day: float = 0.0
