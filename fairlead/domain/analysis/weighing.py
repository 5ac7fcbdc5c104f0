"""The savings of a plan for the members that it changes.

Belongs here: the time lag that an assignment avoids, and for which members. Does not: the
candidates (`candidates`), nor choosing one (`decide`).
"""

from typing import Final

import numpy as np

from fairlead.domain.analysis.diagnosis import Basis
from fairlead.domain.analysis.per_member import sum_by_owner
from fairlead.domain.analysis.sample_series import Float64, Int32, Mask, quotient
from fairlead.domain.analysis.thresholds import CLEARLY, NEGLIGIBLE

#: Minimum share by which a plan must reduce the time lag of members that stay over the objective.
BETTER: Final = 0.1
#: Horizons. Maximum time over which a plan's effect is added up.
FURTHEST: Final = 20.0


def horizons_s(basis: Basis) -> Float64:
    """Return the time over which each member's load is added up, seconds, float64 of shape (M,).

    Long enough to read the whole backlog of the member's reader set: over a shorter time,
    members would get mostly backlog, and later too few arrivals.
    """
    outlook, horizon_s, peers = basis.outlook, basis.rules.horizon_s, basis.estimates.peers
    waits, arrives = (
        sum_by_owner(amounts, peers.of_partition, peers.reader_set.size)
        for amounts in (outlook.backlog, outlook.arrivals)
    )
    spare = np.bincount(peers.reader_set, outlook.capacities, peers.reader_set.size) - arrives
    drained_s = CLEARLY * quotient(waits, spare, 0.0)
    each_s: Float64 = np.clip(drained_s, horizon_s, FURTHEST * horizon_s)[peers.reader_set]
    return each_s


def longest_horizon_s(basis: Basis) -> float:
    """Return the longest of `horizons_s`, in seconds."""
    return float(horizons_s(basis).max(initial=basis.rules.horizon_s))


def gain(basis: Basis, owner: Int32) -> tuple[float, bool]:
    """Return the time lag that new owners avoid, and whether it is slight.

    Seconds, summed over the partitions of the members that change, once the backlog can have been
    read. Slight: a share below `BETTER`, and the members stay over the objective.
    """
    outlook, rules, now = basis.outlook, basis.rules, basis.owner
    changed = owner != now
    members, spans = np.union1d(now[changed], owner[changed]), horizons_s(basis)
    before_s, then_s = (
        float(outlook.total_time_lag(owners, spans)[members].sum()) for owners in (now, owner)
    )
    time_lag_s = outlook.forecast_time_lag(owner, rules.horizon_s)[members]
    slight = before_s - then_s < BETTER * before_s
    return before_s - then_s, slight and bool((time_lag_s > rules.objective_s).any())


def behind(basis: Basis) -> Mask:
    """Return the members whose reader set is over the objective and does not catch up soon, (M,).

    A set catches up if its backlog is read about as soon as any assignment allows.
    """
    outlook, rules, reader_set = basis.outlook, basis.rules, basis.estimates.peers.reader_set
    owner, spans = basis.owner, horizons_s(basis)
    close_s = np.maximum(rules.objective_s, NEGLIGIBLE * (spans - rules.horizon_s))
    late = outlook.forecast_time_lag(owner, rules.horizon_s) > rules.objective_s
    slow = outlook.forecast_time_lag(owner, spans) > close_s
    return np.isin(reader_set, np.intersect1d(reader_set[late], reader_set[slow]))
