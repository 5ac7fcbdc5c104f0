"""Memories of groups: results of earlier analyses that the next analysis uses.

Belongs here: the remembered values. Belongs elsewhere: reading them from the database
(`fairlead.store`), and computing them (`analysis`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.stored_samples import LastStored


@dataclass(frozen=True)
class GroupMemories:
    """Results of earlier analyses by group. A group without such results is missing.

    Parameters
    ----------
    capacities
        Maps each group to the known capacities of its members.
    changes
        Maps each group to the times at which its last plans took effect, ascending.
    samples
        Maps each group to its newest sample that is stored in Postgres.
    costs
        Maps each group to its costs, as returned by `Costs.rows`.
    """

    capacities: Mapping[str, Mapping[str, Capacity]] = field(default_factory=dict)
    changes: Mapping[str, Sequence[datetime]] = field(default_factory=dict)
    samples: Mapping[str, LastStored] = field(default_factory=dict)
    costs: Mapping[str, CostRows] = field(default_factory=dict)

    def select(self, groups: Iterable[str]) -> "GroupMemories":
        """Return only the remembered values of the given groups."""
        names = list(groups)
        return GroupMemories(
            **{
                memory: {name: by_group[name] for name in names if name in by_group}
                for memory, by_group in vars(self).items()
            }
        )
