"""Memories of groups: results of earlier analyses that the next analysis uses.

Belongs here: the values. Belongs elsewhere: reading them (`fairlead.store`), and computing
(`analysis`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.stored_samples import LastStored


@dataclass(frozen=True)
class GroupMemories:
    """Memories of groups; groups without any are missing.

    Parameters
    ----------
    capacities
        Group to the known capacities of its members.
    changes
        Group to the times at which its last plans took effect, ascending.
    samples
        Group to the newest sample stored for its page.
    costs
        Group to its costs, as returned by `Costs.rows`.
    """

    capacities: Mapping[str, Mapping[str, Capacity]] = field(default_factory=dict)
    changes: Mapping[str, Sequence[datetime]] = field(default_factory=dict)
    samples: Mapping[str, LastStored] = field(default_factory=dict)
    costs: Mapping[str, CostRows] = field(default_factory=dict)

    def select(self, groups: Iterable[str]) -> "GroupMemories":
        """Return the memories of some groups."""
        names = list(groups)
        return GroupMemories(
            **{
                memory: {name: by_group[name] for name in names if name in by_group}
                for memory, by_group in vars(self).items()
            }
        )
