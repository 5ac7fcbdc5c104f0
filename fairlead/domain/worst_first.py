"""The order of groups on pages, in tables and in surveys.

Does not import numpy, so that commands that list groups start quickly.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

RowT = TypeVar("RowT", bound=Mapping[str, Any])

#: Seconds. Groups that lose records within this time come first.
SOON_S: Final = 86_400.0
#: Diagnoses that come after all others, with their order.
_CALM: Final = {None: 1, "unknown": 1, "recovering": 2, "healthy": 3}


def worst_first(rows: Iterable[RowT]) -> list[RowT]:
    """Return groups in order, the worst first.

    Groups that lose records within a day come first, the soonest at the top. The other groups are
    ordered by diagnosis: first faults, then unknown, recovering and healthy. Groups with the same
    diagnosis are ordered further: those with a proposed plan come first, then those with the
    largest forecast lag, then those with the largest lag. Groups that are equal in all of this are
    ordered by name.

    Parameters
    ----------
    rows
        Each row has `group`, `diagnosis`, `loss_s` and `forecast_time_lag_s`. `lag` and
        `waiting_state` (the state of the group's open plan) may be missing.

    Examples
    --------
    >>> row = {"loss_s": None, "forecast_time_lag_s": 9.0}
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
        -(row["forecast_time_lag_s"] or 0.0),
        -(row.get("lag") or 0),
        row["group"],
    )
