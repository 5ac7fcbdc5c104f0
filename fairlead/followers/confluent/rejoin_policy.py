"""When a member that takes part in roll calls asks its group for another rebalance.

Belongs here: for which reason, and how long to leave it to others. Does not: what a rebalance
decides (`roll_call`), nor whether this member may ask at all (`participant`).

A rebalance costs the whole group: whoever was left out asks ever more seldom, and where one is
enough each draws its own moment, so that the first one moves all.
"""

import random
from typing import Final

from fairlead.followers.core.plan_cache import PlanState
from fairlead.followers.core.rejoin import RejoinSchedule
from fairlead.wire.record import Identity

_LEFT_OUT_S: Final = 5.0
_LONGEST_LEFT_OUT_S: Final = 300.0
_MOST_DOUBLINGS: Final = 10
#: How soon to ask for another one that was given up: one member's asking is enough.
_GIVEN_UP_S: Final = 1.0
#: How soon to ask for one after the log has become another one.
_MOVED_S: Final = 2.0


class RejoinPolicy:
    """One member's next request for a rebalance.

    Parameters
    ----------
    jitter_s
        Within what time to ask because of a newer plan; None: never.
    rng
        Draws moments.
    """

    def __init__(self, jitter_s: float | None, rng: random.Random) -> None:
        self._rng = rng
        self._schedule = None if jitter_s is None else RejoinSchedule(jitter_s, rng)
        self._left_out = 0
        self._at: float | None = None
        self._for_plan = False
        self.asked_for_plans = 0

    @property
    def pause_s(self) -> float:
        """How long a member that was left out leaves its group alone, at least."""
        return float(min(_LEFT_OUT_S * 2**self._left_out, _LONGEST_LEFT_OUT_S))

    @property
    def pending(self) -> bool:
        """Whether it is only a matter of time."""
        planned = self._schedule is not None and self._schedule.pending
        return self._at is not None or self._for_plan or planned

    def unsettle(self) -> None:
        """Note that a rebalance has begun: there is nothing to ask for until it ends."""
        self._at = None
        self._for_plan = False
        if self._schedule is not None:
            self._schedule.unsettle()

    def settle(self, seen: Identity, *, lapsed: bool, turn_s: float) -> None:
        """Note that a rebalance has ended well, in which this record was the newest known."""
        self._left_out, self._at = 0, None
        if self._schedule is not None:
            self._schedule.settle(seen, lapsed=lapsed, turn_s=turn_s)

    def given_up(self, now: float) -> None:
        """Note that this member gave up what it had ceded, and owns nothing."""
        self._at = now + self._rng.uniform(0.0, _GIVEN_UP_S)

    def left_out(self, now: float) -> None:
        """Note that the others have decided without this member."""
        self._at = now + self._rng.uniform(self.pause_s, 2 * self.pause_s)
        self._left_out = min(self._left_out + 1, _MOST_DOUBLINGS)

    def log_works(self, now: float) -> None:
        """Note that the log works again: what came before was its fault."""
        self._left_out = 0
        if self._at is not None:
            self._at = min(self._at, now + self._rng.uniform(_LEFT_OUT_S, 2 * _LEFT_OUT_S))

    def log_moved(self, now: float) -> None:
        """Note that the log is another one than what was decided stands in."""
        if self._at is None:
            self._at = now + self._rng.uniform(_MOVED_S, 2 * _MOVED_S)

    def to_take_part(self, now: float) -> bool:
        """Whether to ask now, to be part of what is decided; true until `unsettle`."""
        return self._at is not None and now >= self._at and not self._for_plan

    def to_adopt(self, state: PlanState, now: float, *, lapsed: bool) -> bool:
        """Whether to ask now, to adopt a newer plan, or one in force again; until `unsettle`."""
        if not self._for_plan and self._schedule is not None:
            self._for_plan = self._schedule.due(
                seen=state.seen, now=now, lapsed=lapsed, lease_until=state.lease_until
            )
            self.asked_for_plans += self._for_plan
        return self._for_plan
