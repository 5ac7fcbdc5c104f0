"""Decide when a member requests a rebalance because of a newer plan.

Belongs here: which plans need a rebalance, and when. Belongs elsewhere: requesting it (each
client's module).
"""

import random
from dataclasses import dataclass, field
from datetime import datetime

from fairlead.wire.record import NOTHING, Identity


@dataclass
class RejoinSchedule:
    """Decides when one member requests a rebalance to adopt a plan.

    A newer record (with a higher `Identity.rank`) needs a rebalance. A renewed lease needs a
    rebalance only if the group had stopped following the plan because the lease had expired.

    Every member that reads a newer plan waits for a random time of at most `jitter_s`. The first
    request makes the whole group rebalance, so the other members need no request. A member requests
    at most one rebalance for each plan, and one for each renewal of an expired plan.

    Parameters
    ----------
    jitter_s
        Longest random delay, in seconds; None: never request a rebalance.
    rng
        Generates the delay.

    Examples
    --------
    >>> schedule = RejoinSchedule(jitter_s=0.0)
    >>> third, fourth = Identity(1, 3), Identity(1, 4)
    >>> schedule.settle(third)  # the group rebalanced when version 3 was the newest
    >>> [schedule.due(seen=third, now=0.0), schedule.due(seen=fourth, now=1.0)]
    [False, True]
    >>> schedule.due(seen=fourth, now=2.0)
    False
    """

    jitter_s: float | None
    rng: random.Random = field(default_factory=random.Random)
    _settled: Identity | None = None
    _lapsed: bool = False
    _asked: Identity = NOTHING
    _renewed: tuple[Identity, datetime | None] = (NOTHING, None)
    _at: float | None = None
    _turn_s: float = 0.0

    @property
    def pending(self) -> bool:
        """Whether a request is scheduled."""
        return self._at is not None

    def unsettle(self) -> None:
        """Handle the start of a rebalance: until `settle`, `due` returns False."""
        self._settled = None

    def settle(self, seen: Identity, *, lapsed: bool = False, turn_s: float = 0.0) -> None:
        """Handle the end of a rebalance.

        Parameters
        ----------
        seen
            Identity of the newest plan record that was known when the assignment was made.
        lapsed
            Whether `seen` is a plan that was not followed because its lease had expired.
        turn_s
            Seconds added to this member's random delay, so that members earlier in the group's
            order can request the rebalance first.
        """
        self._settled, self._lapsed = seen, lapsed
        self._at = None
        self._turn_s = turn_s

    def due(
        self,
        *,
        seen: Identity,
        now: float,
        lapsed: bool = False,
        lease_until: datetime | None = None,
    ) -> bool:
        """Whether to request a rebalance now; True once for each newer plan and each renewal.

        Parameters
        ----------
        seen
            The newest plan record that this member has read.
        now
            A monotonic time in seconds.
        lapsed
            Whether `seen` is a plan whose lease has expired.
        lease_until
            End of the plan's lease; None: the plan never expires.
        """
        if self._settled is None or self.jitter_s is None:
            return False
        newer = seen.rank > max(self._settled, self._asked).rank
        renewal = (seen, lease_until)
        renewed = (
            self._lapsed
            and not lapsed
            and seen.rank == self._settled.rank
            and renewal != self._renewed
        )
        if not newer and not renewed:
            return False
        if self._at is None:
            self._at = now + self._turn_s + self.rng.uniform(0.0, self.jitter_s)
        if now < self._at:
            return False
        self._asked, self._renewed, self._at = seen, renewal, None
        return True
