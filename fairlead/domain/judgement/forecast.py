"""How late an assignment will be: utilisation now, backlog and lateness at the horizon.

Belongs here: the figures by which assignments are compared, in seconds and shares. Does not:
estimating what goes into them (`rates`, `commits`, `capacities`).

A member to whose partitions `a` records arrive a second, who can do `c` and has a backlog of `B`,
has one of max(0, B + (a - c) H) at the horizon H, which is as many seconds late as it takes to
arrive.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairlead.domain.judgement.looks import Float64, Int32

#: Arrivals may be this many standard deviations fewer than they are estimated.
CHANCE: Final = 2.0
#: But arrivals that are known as well as this, as a share of them, are taken as they are.
CERTAIN: Final = 0.03


@dataclass(frozen=True)
class Forecast:
    """What becomes of an assignment.

    Parameters
    ----------
    late_s
        The worst partition's time lag at the horizon, seconds.
    utilisation
        The fullest member's arrivals over its capacity: above 1 it falls behind.
    """

    late_s: float
    utilisation: float


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is expected of P partitions and M members.

    Parameters
    ----------
    arrivals
        Records a second, float64 of shape (P,).
    deviation
        Their standard deviations, float64 of shape (P,).
    backlog
        Records that wait now, float64 of shape (P,).
    late_s
        Time lag now, seconds, float64 of shape (P,).
    capacities
        Records a second, float64 of shape (M,).
    """

    arrivals: Float64
    deviation: Float64
    backlog: Float64
    late_s: Float64
    capacities: Float64

    def by_member(self, values: Float64, owner: Int32) -> Float64:
        """Sum values of shape (P,) over each member's partitions, float64 of shape (M,)."""
        owned = owner >= 0
        count = self.capacities.size
        return np.bincount(owner[owned], weights=values[owned], minlength=count).astype(np.float64)

    def utilisation(self, owner: Int32) -> Float64:
        """Return arrivals over capacity of each member, float64 of shape (M,); 0 where idle."""
        arrivals = self.by_member(self.arrivals, owner)
        return np.where(self.capacities > 0, _over(arrivals, self.capacities), 0.0)

    def lateness(self, owner: Int32, horizon_s: float) -> Float64:
        """Return each member's lateness at the horizon, seconds, float64 of shape (M,).

        Never more than what is late now and the horizon together: nothing grows older faster. What
        is late now for a member of whose speed nothing is known.
        """
        return self._lateness(self.by_member(self.arrivals, owner), owner, horizon_s)

    def sure_lateness(self, owner: Int32, horizon_s: float) -> Float64:
        """Return each member's lateness if less arrives than is estimated, as may be by chance.

        Where a few records come an hour, a member that is used to nine tenths looks overloaded now
        and then. Float64 of shape (M,), never above `lateness`.
        """
        arrivals = self.by_member(self.arrivals, owner)
        chance = CHANCE * np.sqrt(self.by_member(self.deviation**2, owner))
        fewest = np.where(chance > CERTAIN * arrivals, np.maximum(arrivals - chance, 0.0), arrivals)
        sure = self._lateness(fewest, owner, horizon_s)
        return np.minimum(sure, self._lateness(arrivals, owner, horizon_s))

    def _lateness(self, arrivals: Float64, owner: Int32, horizon_s: float) -> Float64:
        waiting = self.by_member(self.backlog, owner)
        left = np.maximum(waiting + (arrivals - self.capacities) * horizon_s, 0.0)
        oldest = np.zeros(self.capacities.size)
        owned = owner >= 0
        np.maximum.at(oldest, owner[owned], self.late_s[owned])
        grown = np.minimum(_over(left, arrivals), oldest + horizon_s)
        return np.where(self.capacities > 0, grown, oldest)

    def forecast(self, owner: Int32, horizon_s: float) -> Forecast:
        """Return the two figures that decide.

        Examples
        --------
        >>> none, speeds = np.zeros(2), np.array([100.0, 100.0])
        >>> outlook = Outlook(np.array([60.0, 50.0]), none, none, none, speeds)
        >>> outlook.forecast(np.array([0, 0], np.int32), 1800.0)
        Forecast(late_s=163.63636363636363, utilisation=1.1)
        >>> outlook.forecast(np.array([0, 1], np.int32), 1800.0)
        Forecast(late_s=0.0, utilisation=0.6)
        """
        return Forecast(
            late_s=float(self.lateness(owner, horizon_s).max(initial=0.0)),
            utilisation=float(self.utilisation(owner).max(initial=0.0)),
        )

    def lateness_in_all(self, owner: Int32, horizon_s: float) -> float:
        """Return the lateness at a horizon, summed over partitions; seconds."""
        partitions = self.by_member(np.ones_like(self.arrivals), owner)
        return float((self.lateness(owner, horizon_s) * partitions).sum())


def _over(amounts: Float64, per_s: Float64) -> Float64:
    """Divide; nothing over nothing is 0, something over nothing a day."""
    nothing = per_s <= 0
    quotient = amounts / np.where(nothing, 1.0, per_s)
    return np.where(nothing, np.where(amounts > 0, 86_400.0, 0.0), quotient)
