"""One member's part in one generation of its group: what becomes of the share that range gave it.

Belongs here: announcing the member, waiting within bounds, writing a pin in its turn. Does not: the
rules that all members share (`roll_call`), nor joining the group and owning partitions (`member`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from fairlead.followers.confluent.pin_listener import REQUEST_S, Log, PinListener
from fairlead.followers.confluent.pin_log import Sent
from fairlead.followers.confluent.roll_call import RollCall, Verdict, draw_up
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.wire.pins import MOST_PARTITIONS, Announcement, Pin

#: Seconds. How long a refused announcement is sent again, and how often.
RESEND_S: Final = 1.0
_RESEND_EVERY_S: Final = 0.1
#: Seconds. Longest time in which the log must return this member's announcement.
_READ_BACK_S: Final = 3.0
#: Seconds. Longest wait for a pin; and the time beyond `read_timeout_s` if plans are still read.
_LONGEST_S: Final = 4.0
_AFTER_PLANS_S: Final = 2.0
_UNREAD: Final = "its announcement was not read again"
_INTERRUPTED: Final = "sending it was interrupted"
#: Most records kept, and partitions named in them: five rounds of the largest group.
_MOST_RECORDS: Final = 10_000
_MOST_NAMED: Final = 10 * MOST_PARTITIONS


class RangeShare(Enum):
    """State of the share that `range` assigned; once given up, other members may own it."""

    OPEN = "open"
    KEPT = "kept"
    GIVEN_UP = "given up"
    #: Given up, and this member no longer waits for a pin.
    ABANDONED = "abandoned"


#: A kept share is never given up, and a share given up is kept only if no other member can know.
NEXT_OF_SHARE: Final = {
    RangeShare.OPEN: {RangeShare.KEPT, RangeShare.GIVEN_UP},
    RangeShare.KEPT: set[RangeShare](),
    RangeShare.GIVEN_UP: {RangeShare.KEPT, RangeShare.ABANDONED},
    RangeShare.ABANDONED: set[RangeShare](),
}


@dataclass
class Generation:
    """One generation, from range's share to the verdict.

    Parameters
    ----------
    call
        The rules' view of the log.
    listener, reader, clock
        The member's log, plans and time.
    read_timeout_s
        How long a pin may wait for plans to be read.
    counts
        Topic to number of partitions, as last read; updated here.
    """

    call: RollCall
    listener: PinListener
    reader: PlanReader
    clock: Clock
    read_timeout_s: float
    counts: dict[str, int]
    #: Why the member did not announce itself, or stopped waiting.
    reason: str | None = None
    share: RangeShare = RangeShare.OPEN
    #: The log through which the member announced itself.
    through: Log | None = None
    _sent: Sent | None = None
    _resend_at: float = 0.0
    _counted: bool = False
    _began_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._began_at = self.clock.monotonic()

    @property
    def key(self) -> tuple[int, str]:
        """The generation and the member id."""
        return self.call.me.generation, self.call.me.member

    @property
    def waited_s(self) -> float:
        """Seconds since the generation began."""
        return self.clock.monotonic() - self._began_at

    @property
    def unread(self) -> bool:
        """Whether the log should have returned the announcement by now, and has not."""
        announced = self.share is not RangeShare.KEPT
        return announced and not self.call.announced and self.waited_s >= RESEND_S

    def announce(self, pins: Log) -> None:
        """Give up range's share: announce the member to the others."""
        # State first: after an interruption the share counts as given up.
        self._become(RangeShare.GIVEN_UP)
        self.through, self._sent = pins, Sent(doubtful=_INTERRUPTED)
        self._sent = pins.append(self.call.me)
        self._resend_at = self.clock.monotonic() + _RESEND_EVERY_S

    def keep(self, reason: str | None) -> None:
        """Keep range's share: no other member can own any of it."""
        self._become(RangeShare.KEPT)
        self.reason = reason

    def abandon(self, reason: str) -> None:
        """Stop waiting for a pin; another member may own what was given up."""
        if self.listener.works:
            self.listener.doubt(reason)
        if self.share is RangeShare.GIVEN_UP:
            self._become(RangeShare.ABANDONED)
        self.reason = reason

    def step(self) -> Verdict | None:
        """Return the verdict if there is one; else write a pin if it is this member's turn."""
        verdict = self.call.verdict()
        if verdict is None and self.share is RangeShare.GIVEN_UP:
            self._check_announcement()
        if self.share is RangeShare.KEPT:
            return Verdict(self.call.me.given, listed=False)
        if self.share is RangeShare.ABANDONED:
            return Verdict({}, listed=False)
        if verdict is None:
            self._pin_if_due()
        return verdict

    def _become(self, share: RangeShare) -> None:
        if share is not self.share and share not in NEXT_OF_SHARE[self.share]:
            raise AssertionError(f"{share} does not follow {self.share}")
        self.share = share

    def _check_announcement(self) -> None:
        """Send a refused announcement again; abandon one that takes too long."""
        pins, refused = self.through, self._sent.refused if self._sent else None
        same_log = pins is self.listener.log and self.listener.works
        if refused is None:
            problem = self._problem(same_log=same_log)
            if problem is not None:
                self.abandon(problem)
            if problem == _UNREAD:
                self.listener.give_up(problem)
        elif pins is None or not same_log or self.waited_s >= RESEND_S:
            self.keep(f"its announcement was refused: {refused}")
            self.listener.doubt(refused)
        elif self.clock.monotonic() >= self._resend_at:
            self.announce(pins)

    def _problem(self, *, same_log: bool) -> str | None:
        """Return why this member should not wait any longer for a pin; None: it should wait."""
        doubtful = self._sent.doubtful if self._sent else None
        longest_s = _LONGEST_S if self.reader.caught_up else self.read_timeout_s + _AFTER_PLANS_S
        if not same_log:
            return "the log was lost in the middle of a roll call"
        if doubtful is not None:
            return f"its announcement was not acknowledged: {doubtful}"
        if not self.call.announced and self.waited_s >= _READ_BACK_S:
            return _UNREAD
        if self.call.in_vain:
            return "the pin topic's leader has changed in the middle of a roll call"
        if self.waited_s >= longest_s:
            return f"no assignment was pinned within {self.waited_s:.0f} s"
        return None

    def _pin_if_due(self) -> None:
        pins = self.listener.log
        if pins is None or not self._is_due():
            return
        if not self._counted:
            self._counted = True
            self.call.expect(self._read_counts(pins))
            if not self._is_due():
                return
        if not self.reader.caught_up and self.waited_s < self.read_timeout_s:
            return
        state, me = self.reader.state, self.call.me.member
        pins.append(draw_up(self.call.heard, state, now=self.clock.utc(), member=me))
        self.call.pinned(self.clock.monotonic())

    def _is_due(self) -> bool:
        due_at = self.call.pin_due_at()
        return due_at is not None and self.clock.monotonic() >= due_at

    def _read_counts(self, pins: Log) -> dict[str, int]:
        """Return how many partitions each topic has; the last known number without an answer."""
        topics = self.call.me.topics
        deadline = self.clock.monotonic() + REQUEST_S
        for topic in topics:
            left_s = deadline - self.clock.monotonic()
            if left_s <= 0:
                break
            count = pins.partition_count(topic, left_s)
            if count is not None:
                self.counts[topic] = count
        # With an unknown number any member may be missing: wait for all.
        return {topic: self.counts.get(topic, MOST_PARTITIONS) for topic in topics}


class Backlog:
    """Records read before this member knows its generation, with their leader epochs.

    Bounded, because other writers may write any amount. A member that has not kept all records
    must not announce itself.
    """

    def __init__(self) -> None:
        #: Whether all records since `clear` were kept.
        self.whole = True
        self._records: list[tuple[Announcement | Pin, int]] = []
        self._named = 0

    def __iter__(self) -> Iterator[tuple[Announcement | Pin, int]]:
        """Return the records in the order of the log."""
        return iter(self._records)

    def add(self, record: Announcement | Pin, epoch: int) -> None:
        """Keep a record within the bounds."""
        shares = [record.given] if isinstance(record, Announcement) else record.shares.values()
        self._named += sum(len(numbers) for share in shares for numbers in share.values())
        if not self.whole or len(self._records) >= _MOST_RECORDS or self._named > _MOST_NAMED:
            self.whole = False
        else:
            self._records.append((record, epoch))

    def clear(self) -> None:
        """Remove all records."""
        self._records, self._named, self.whole = [], 0, True
