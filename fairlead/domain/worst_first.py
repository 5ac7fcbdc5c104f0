"""Which group is worse off than which: the order of lists of groups.

Belongs here: the one order of pages, tables and surveys. Does not: what is the matter with a group
(`fairlead.domain.analysis.diagnosis`). Lists wait for no arrays: nothing here imports any.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

RowT = TypeVar("RowT", bound=Mapping[str, Any])

#: Records that are lost within so many seconds come before all else.
SOON_S: Final = 86_400.0
#: Every other diagnosis comes before these.
_CALM: Final = {None: 1, "unknown": 1, "recovering": 2, "healthy": 3}


def worst_first(rows: Iterable[RowT]) -> list[RowT]:
    """Order groups by how bad it is with them.

    First come those that lose records within a day, the soonest first; then those that are ill,
    those of which too little is known, those that recover, the healthy ones; among each, who waits
    for a person, who is forecast latest, who is furthest behind, by name.

    Parameters
    ----------
    rows
        With `group`, `diagnosis`, `loss_s` and `late_s`; and `waiting_state` or `lag`, if known.

    Examples
    --------
    >>> row = {"loss_s": None, "late_s": 9.0}
    >>> well, ill = row | {"diagnosis": "healthy"}, row | {"diagnosis": "overloaded"}
    >>> lost = well | {"diagnosis": "unknown", "loss_s": 60.0}
    >>> groups = [well | {"group": "a"}, ill | {"group": "b"}, lost | {"group": "c"}]
    >>> [group["group"] for group in worst_first(groups)]
    ['c', 'b', 'a']
    """
    return sorted(rows, key=_badness)


def _badness(row: Mapping[str, Any]) -> tuple[float, int, bool, float, int, str]:
    loss_s = row["loss_s"]
    return (
        SOON_S if loss_s is None else min(loss_s, SOON_S),
        _CALM.get(row["diagnosis"], 0),
        row.get("waiting_state") != "proposed",
        -(row["late_s"] or 0.0),
        -(row.get("lag") or 0),
        row["group"],
    )
