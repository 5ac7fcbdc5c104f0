"""Decide when a confluent-kafka member requests another rebalance.

Belongs here: the reasons, and how long to wait for other members' requests. Belongs elsewhere: the
result of a rebalance (`agreement_round`), and whether this member may request one (`member`).

A rebalance interrupts the whole group. So a member that is left out several times in a row waits
longer before each request. For a newer plan, one rebalance is enough for all members. So each
member waits for a random time, and the first request makes the others unnecessary.
"""

import random
from typing import Final

from fairlead.followers.core.plan_cache import PlanState
from fairlead.followers.core.rejoin import RejoinSchedule
from fairlead.wire.record import Identity

#: Seconds. Shortest pause between an agreement round without this member and the request for a
#: rebalance; doubled after each such round, up to `_LONGEST_LEFT_OUT_S`.
_LEFT_OUT_S: Final = 5.0
_LONGEST_LEFT_OUT_S: Final = 300.0
_MOST_DOUBLINGS: Final = 10
#: Seconds. Shortest pause between the coordination log's recovery and the rebalance request of a
#: member that was left out once. Other members need this time to open the log.
_LOG_BACK_S: Final = 1.0
#: Seconds. A member that stopped waiting for an assignment record owns nothing. It requests a
#: rebalance after a pause of at most this time.
_GIVEN_UP_S: Final = 1.0
#: Seconds. Shortest pause between opening a new coordination topic and the rebalance request. Other
#: members need this time to open the topic.
_MOVED_S: Final = 2.0


class RejoinPolicy:
    """Schedules one member's next request for a rebalance.

    Parameters
    ----------
    jitter_s
        Longest random delay of a request for a newer plan, in seconds; None: do not request a
        rebalance for a newer plan.
    rng
        Generates the delays.
    """

    def __init__(self, jitter_s: float | None, rng: random.Random) -> None:
        self._rng = rng
        self._schedule = RejoinSchedule(jitter_s, rng)
        self._left_out = 0
        self._at: float | None = None
        self._for_plan = False
        self.asked_for_plans = 0

    @property
    def pause_s(self) -> float:
        """Seconds. Shortest pause before the next request if the member is left out now."""
        return float(min(_LEFT_OUT_S * 2**self._left_out, _LONGEST_LEFT_OUT_S))

    @property
    def pending(self) -> bool:
        """Whether a request is scheduled or due."""
        return self._at is not None or self._for_plan or self._schedule.pending

    def unsettle(self) -> None:
        """Handle the start of a rebalance: cancel all scheduled requests."""
        self._at = None
        self._for_plan = False
        self._schedule.unsettle()

    def settle(self, seen: Identity, *, lapsed: bool, turn_s: float) -> None:
        """Handle the end of a rebalance that included this member; see `RejoinSchedule.settle`."""
        self._left_out, self._at = 0, None
        self._schedule.settle(seen, lapsed=lapsed, turn_s=turn_s)

    def given_up(self, now: float) -> None:
        """Schedule a request, because this member owns nothing.

        The member gave up its partitions, and stopped waiting for an assignment record.
        """
        self._at = now + self._rng.uniform(0.0, _GIVEN_UP_S)

    def left_out(self, now: float) -> None:
        """Schedule a request, because this member did not take part in the agreement round."""
        self._at = now + self._rng.uniform(self.pause_s, 2 * self.pause_s)
        self._left_out = min(self._left_out + 1, _MOST_DOUBLINGS)

    def log_works(self, now: float) -> None:
        """Move a scheduled request to an earlier time, because the log works again."""
        pause_s = _LOG_BACK_S if self._left_out == 1 else _LEFT_OUT_S
        self._left_out = 0
        if self._at is not None:
            self._at = min(self._at, now + self._rng.uniform(pause_s, 2 * pause_s))

    def log_moved(self, now: float) -> None:
        """Schedule a request, because the group has another coordination log now."""
        if self._at is None:
            self._at = now + self._rng.uniform(_MOVED_S, 2 * _MOVED_S)

    def to_take_part(self, now: float) -> bool:
        """Return whether to request a rebalance now, to take part in a round.

        Once True, the result stays True until `unsettle`.
        """
        return self._at is not None and now >= self._at and not self._for_plan

    def to_adopt(self, state: PlanState, now: float, *, lapsed: bool) -> bool:
        """Return whether to request a rebalance now, because of a newer or renewed plan.

        Once True, the result stays True until `unsettle`.
        """
        if not self._for_plan:
            self._for_plan = self._schedule.due(
                seen=state.seen, now=now, lapsed=lapsed, lease_until=state.lease_until
            )
            self.asked_for_plans += self._for_plan
        return self._for_plan
