"""Forecasts of a group under any plan, from its analysis.

They allow comparing an earlier plan with a new one by the same figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlead.domain.analysis.forecast import Forecast, Outlook
from fairlead.domain.as_problem import Shares


@dataclass(frozen=True, eq=False)
class Prospect:
    """The outlook of a group with M members and T topics.

    Parameters
    ----------
    partition_counts
        Topic to number of partitions, in the order of the outlook's arrays.
    members
        M names, in the order of its capacities.
    outlook
        Arrivals, backlog and capacities.
    horizon_s
        Horizon of the forecast; seconds.
    """

    partition_counts: Mapping[str, int]
    members: Sequence[str]
    outlook: Outlook
    horizon_s: float

    def forecast(self, plan: Shares) -> Forecast:
        """Return the forecast under a plan for the same members and partitions."""
        starts = dict(
            zip(
                self.partition_counts,
                np.cumsum([0, *self.partition_counts.values()]).tolist(),
                strict=False,  # the last offset is the end
            )
        )
        owner = np.full(sum(self.partition_counts.values()), -1, dtype=np.int32)
        for index, name in enumerate(self.members):
            for topic, numbers in plan.members[name].partitions.items():
                owner[starts[topic] + numbers] = index
        return self.outlook.forecast(owner, self.horizon_s)
