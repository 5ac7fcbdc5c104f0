"""When a newer plan is worth a rebalance.

Belongs here: which plan change to ask for, once, and when. Does not: asking (each client's module).
"""

import random
from dataclasses import dataclass, field
from datetime import datetime

from fairlead.wire.record import NOTHING, Identity


@dataclass
class RejoinSchedule:
    """Decides when one member asks for a rebalance because of a plan its group has not heard of.

    Plans are compared by what they are known by, wherever they stand: the same one told again, as
    when its lease is extended, is nothing to rebalance for, unless the group did without it since
    its lease was over.

    Every member that sees a newer plan draws a time within the jitter; the first to come up
    makes the whole group rebalance, and the others then have nothing left to ask for. Each plan is
    asked for once at most, and once for each lease that puts it in force again.

    Parameters
    ----------
    jitter_s
        The longest delay, in seconds.
    rng
        Draws the delay; a seeded one makes it reproducible.

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

    jitter_s: float
    rng: random.Random = field(default_factory=random.Random)
    _settled: Identity | None = None
    _lapsed: bool = False
    _asked: Identity = NOTHING
    _renewed: tuple[Identity, datetime | None] = (NOTHING, None)
    _at: float | None = None
    _turn_s: float = 0.0

    @property
    def pending(self) -> bool:
        """Whether a time is drawn that has not come."""
        return self._at is not None

    def unsettle(self) -> None:
        """Note that a rebalance has begun: there is nothing to ask for until it ends."""
        self._settled = None

    def settle(self, seen: Identity, *, lapsed: bool = False, turn_s: float = 0.0) -> None:
        """Note that a rebalance has ended in which this record was the newest known.

        It may be a plan that was not followed, since its lease was over: then `lapsed`.
        Where members take turns in asking, `turn_s` is how long this one leaves it to others.
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
        """Whether to ask now; true once for a plan, and for a lease that it had to wait for.

        Parameters
        ----------
        seen
            The newest record known.
        now
            A monotonic time in seconds.
        lapsed, lease_until
            Whether that is a plan whose lease is over; and until when that lasts, if not for ever.
        """
        if self._settled is None:
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
