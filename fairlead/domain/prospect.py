"""How late a group will be under any assignment, as its analysis saw it.

Belongs here: the analysis's figures in the terms of plans, so that one which was made before can
be held against what is known now. Does not: the forecast (`fairlead.domain.analysis.forecast`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairlead.domain.analysis.forecast import Forecast, Outlook
from fairlead.domain.as_problem import Shares


@dataclass(frozen=True, eq=False)
class Prospect:
    """What is expected of a group: P partitions of T topics, M members.

    Parameters
    ----------
    partition_counts
        Topic to number of partitions, in the order of the outlook's arrays.
    members
        M names, in the order of its capacities.
    outlook
        Arrivals, backlog and capacities.
    horizon_s
        How far ahead; seconds.
    """

    partition_counts: Mapping[str, int]
    members: Sequence[str]
    outlook: Outlook
    horizon_s: float

    def forecast(self, plan: Shares) -> Forecast:
        """Return what becomes of the group under a plan for the same members and partitions."""
        starts = dict(
            zip(
                self.partition_counts,
                np.cumsum([0, *self.partition_counts.values()]).tolist(),
                strict=False,  # the last is where nothing starts
            )
        )
        owner = np.full(sum(self.partition_counts.values()), -1, dtype=np.int32)
        for index, name in enumerate(self.members):
            for topic, numbers in plan.members[name].partitions.items():
                owner[starts[topic] + numbers] = index
        return self.outlook.forecast(owner, self.horizon_s)
