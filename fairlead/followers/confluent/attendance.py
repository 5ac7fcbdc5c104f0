"""What one member does in one generation: its roll call, and what became of what it said.

Belongs here: the announcement on its way, and how long it is waited for. Does not: the rules of a
roll call (`roll_call`), nor the way on where waiting ends (`participant`).
"""

from dataclasses import dataclass
from typing import Final

from fairlead.followers.confluent.pin_listener import Log
from fairlead.followers.confluent.pin_log import Sent
from fairlead.followers.confluent.roll_call import RollCall
from fairlead.followers.confluent.states import RangeShare, step

#: How long an announcement that was refused is tried again, and how often.
AGAIN_S: Final = 1.0
_EACH_S: Final = 0.1
#: How long an announcement may take to come back through the log.
_BACK_S: Final = 3.0
UNREAD: Final = "its announcement was not read again"
_INTERRUPTED: Final = "sending it was interrupted"


@dataclass
class Attendance:
    """What this member does in one generation.

    Parameters
    ----------
    call
        As this member sees it.
    began_at
        When, by a monotonic clock.
    share
        What became of what range gave it.
    sent
        Its announcement, if there is one.
    through
        The log it was sent through.
    again_at
        When to send it again, should it be refused.
    why
        Why nothing was announced, or the call was given up.
    counted
        Whether partition counts have been asked for.
    """

    call: RollCall
    began_at: float
    share: RangeShare = RangeShare.OPEN
    sent: Sent | None = None
    through: Log | None = None
    again_at: float = 0.0
    why: str | None = None
    counted: bool = False

    @property
    def is_for(self) -> tuple[int, str]:
        """The generation and the member."""
        return self.call.me.generation, self.call.me.member

    def announce(self, pins: Log, now: float) -> None:
        """Announce the member, which cedes what range gave it unless that is surely refused."""
        # First what may be so, then what makes it so: an interruption leaves the worse of the two.
        self.share = step(self.share, RangeShare.CEDED)
        self.through, self.sent = pins, Sent(doubtful=_INTERRUPTED)
        self.sent = pins.append(self.call.me)
        self.again_at = now + _EACH_S

    def keep(self, why: str | None) -> None:
        """Keep what range gave: nothing was ceded, or surely not, after all."""
        self.share, self.why = step(self.share, RangeShare.KEPT), why

    def give_up(self, why: str) -> None:
        """Wait no longer for a decision on what was ceded, if anything was."""
        if self.share is RangeShare.CEDED:
            self.share = step(self.share, RangeShare.GIVEN_UP)
        self.why = why

    def trouble(self, now: float, *, same_log: bool, longest_s: float) -> str | None:
        """Say why an announcement that was not refused is no longer waited for; None: it is.

        Parameters
        ----------
        now
            A monotonic time in seconds.
        same_log
            Whether the log it was sent through still is open and works.
        longest_s
            How long the roll call may take.
        """
        waited_s = now - self.began_at
        if not same_log:
            return "the log was lost in the middle of a roll call"
        if self.sent is not None and self.sent.doubtful is not None:
            return f"its announcement was not acknowledged: {self.sent.doubtful}"
        if not self.call.announced and waited_s >= _BACK_S:
            return UNREAD
        if self.call.in_vain:
            return "the pin topic's leader has changed in the middle of a roll call"
        if waited_s >= longest_s:
            return f"no assignment was pinned within {waited_s:.0f} s"
        return None
