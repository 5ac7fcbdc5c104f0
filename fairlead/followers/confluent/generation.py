"""One member's part in the agreement round of one generation.

Belongs here: announcing the member, waiting with time limits, and writing an assignment record when
it is the member's turn. Belongs elsewhere: the rules that all members share (`agreement_round`),
and joining the group and owning partitions (`member`).

The round begins when `range` has assigned partitions, and ends with a verdict: the partitions that
the member owns.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from fairlead.followers.confluent.agreement_log import AgreementLog, Sent
from fairlead.followers.confluent.agreement_round import AgreementRound, Verdict, draw_up
from fairlead.followers.confluent.log_listener import REQUEST_S, LogListener
from fairlead.followers.core.clock import Clock
from fairlead.followers.core.plan_reader import PlanReader
from fairlead.wire.agreement import MOST_PARTITIONS, Announcement, AssignmentRecord

#: Seconds after the start of the generation. Until then, the member sends its announcement again if
#: the broker refuses it.
RESEND_S: Final = 1.0
#: Seconds between two attempts to send the announcement.
_RESEND_EVERY_S: Final = 0.1
#: Seconds. Longest time from a generation's start until a member reads its own announcement.
_READ_BACK_S: Final = 3.0
#: Seconds. A member that has read the plan topic to its end waits at most this time for an
#: assignment record.
_LONGEST_S: Final = 4.0
#: Seconds. A member that has not read the plan topic to its end waits at most this time plus
#: `read_timeout_s` for an assignment record.
_AFTER_PLANS_S: Final = 2.0
_UNREAD: Final = "its announcement was not read back"
_INTERRUPTED: Final = "sending it was interrupted"
#: Maximum number of records in a `Backlog`.
_MOST_RECORDS: Final = 10_000
#: Maximum number of partitions in all records of a `Backlog`. That is enough for five rounds of the
#: largest group: a round lists each partition in an announcement and in the assignment record.
_MOST_NAMED: Final = 10 * MOST_PARTITIONS


class RangeShare(Enum):
    """State of the partitions that `range` assigned to this member."""

    OPEN = "open"
    KEPT = "kept"
    GIVEN_UP = "given up"
    #: The member gave up the partitions, and no longer waits for an assignment record.
    ABANDONED = "abandoned"


#: The states that may follow each state. `KEPT` may follow `GIVEN_UP` only if the broker certainly
#: did not store the announcement.
NEXT_OF_SHARE: Final = {
    RangeShare.OPEN: {RangeShare.KEPT, RangeShare.GIVEN_UP},
    RangeShare.KEPT: set[RangeShare](),
    RangeShare.GIVEN_UP: {RangeShare.KEPT, RangeShare.ABANDONED},
    RangeShare.ABANDONED: set[RangeShare](),
}


@dataclass
class Generation:
    """One member's part in the agreement round of one generation.

    Parameters
    ----------
    round
        The member's agreement round.
    listener, reader, clock
        The member's coordination log, reader of plans, and clock.
    read_timeout_s
        Seconds. If this member has not read the plan topic to its end, it waits this long after the
        start of the generation before it writes an assignment record.
    counts
        Maps each topic to its number of partitions; this class updates the numbers in place.
    """

    round: AgreementRound
    listener: LogListener
    reader: PlanReader
    clock: Clock
    read_timeout_s: float
    counts: dict[str, int]
    #: Why the member did not announce itself, or stopped waiting for an assignment record.
    reason: str | None = None
    share: RangeShare = RangeShare.OPEN
    #: The coordination log to which the member sent its announcement.
    through: AgreementLog | None = None
    _sent: Sent | None = None
    _resend_at: float = 0.0
    _counted: bool = False
    _began_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._began_at = self.clock.monotonic()

    @property
    def key(self) -> tuple[int, str]:
        """The generation and the member id."""
        return self.round.me.generation, self.round.me.member

    @property
    def waited_s(self) -> float:
        """Seconds since the generation began."""
        return self.clock.monotonic() - self._began_at

    @property
    def unread(self) -> bool:
        """Whether the member has not read its own announcement within `RESEND_S`."""
        announced = self.share is not RangeShare.KEPT
        return announced and not self.round.announced and self.waited_s >= RESEND_S

    def announce(self, agreement_log: AgreementLog) -> None:
        """Announce the member, which thereby gives up its partitions from `range`."""
        # Set the state first: even if sending is interrupted, others may read the announcement.
        self._become(RangeShare.GIVEN_UP)
        self.through, self._sent = agreement_log, Sent(doubtful=_INTERRUPTED)
        self._sent = agreement_log.append(self.round.me)
        self._resend_at = self.clock.monotonic() + _RESEND_EVERY_S

    def keep(self, reason: str | None) -> None:
        """Keep the partitions that `range` assigned. Call only if no other member can get them."""
        self._become(RangeShare.KEPT)
        self.reason = reason

    def abandon(self, reason: str) -> None:
        """Stop waiting for an assignment record; the member then owns nothing.

        The partitions that this member gave up may belong to other members.
        """
        if self.listener.works:
            self.listener.doubt(reason)
        if self.share is RangeShare.GIVEN_UP:
            self._become(RangeShare.ABANDONED)
        self.reason = reason

    def step(self) -> Verdict | None:
        """Return the round's verdict. If there is none yet, write an assignment when it is due."""
        verdict = self.round.verdict()
        if verdict is None and self.share is RangeShare.GIVEN_UP:
            self._check_announcement()
        if self.share is RangeShare.KEPT:
            return Verdict(self.round.me.given, listed=False)
        if self.share is RangeShare.ABANDONED:
            return Verdict({}, listed=False)
        if verdict is None:
            self._write_if_due()
        return verdict

    def _become(self, share: RangeShare) -> None:
        if share is not self.share and share not in NEXT_OF_SHARE[self.share]:
            raise AssertionError(f"{share} cannot be the next state after {self.share}")
        self.share = share

    def _check_announcement(self) -> None:
        """Check whether the announcement has arrived, and whether to wait for a decision.

        If the broker refused the announcement, send it again; after `RESEND_S`, keep the partitions
        from `range`. After other problems, stop waiting.
        """
        agreement_log, refused = self.through, self._sent.refused if self._sent else None
        same_log = agreement_log is self.listener.log and self.listener.works
        if refused is None:
            problem = self._problem(same_log=same_log)
            if problem is not None:
                self.abandon(problem)
            if problem == _UNREAD:
                self.listener.give_up(problem)
        elif agreement_log is None or not same_log or self.waited_s >= RESEND_S:
            self.keep(f"its announcement was refused: {refused}")
            self.listener.doubt(refused)
        elif self.clock.monotonic() >= self._resend_at:
            self.announce(agreement_log)

    def _problem(self, *, same_log: bool) -> str | None:
        """Return why this member should stop waiting for an assignment; None: it should wait."""
        doubtful = self._sent.doubtful if self._sent else None
        longest_s = _LONGEST_S if self.reader.caught_up else self.read_timeout_s + _AFTER_PLANS_S
        if not same_log:
            return "the log was lost in the middle of an agreement round"
        if doubtful is not None:
            return f"its announcement was not acknowledged: {doubtful}"
        if not self.round.announced and self.waited_s >= _READ_BACK_S:
            return _UNREAD
        if self.round.superseded:
            return "the coordination topic's leader has changed in the middle of an agreement round"
        if self.waited_s >= longest_s:
            return f"no assignment was written within {self.waited_s:.0f} s"
        return None

    def _write_if_due(self) -> None:
        agreement_log = self.listener.log
        if agreement_log is None or not self._is_due():
            return
        if not self._counted:
            self._counted = True
            self.round.expect(self._read_counts(agreement_log))
            if not self._is_due():
                return
        if not self.reader.caught_up and self.waited_s < self.read_timeout_s:
            return
        state, me = self.reader.state, self.round.me.member
        agreement_log.append(draw_up(self.round.heard, state, now=self.clock.utc(), member=me))
        self.round.written_at = self.clock.monotonic()

    def _is_due(self) -> bool:
        due_at = self.round.write_due_at()
        return due_at is not None and self.clock.monotonic() >= due_at

    def _read_counts(self, agreement_log: AgreementLog) -> dict[str, int]:
        """Return the number of partitions of each topic.

        If the broker does not answer, use the last number read.
        """
        topics = self.round.me.topics
        deadline = self.clock.monotonic() + REQUEST_S
        for topic in topics:
            left_s = deadline - self.clock.monotonic()
            if left_s <= 0:
                break
            count = agreement_log.partition_count(topic, left_s)
            if count is not None:
                self.counts[topic] = count
        # If a number was never read, use the maximum. Then this member waits longer for
        # announcements: no member announces that it gave up partitions that do not exist.
        return {topic: self.counts.get(topic, MOST_PARTITIONS) for topic in topics}


class Backlog:
    """Records read before this member knows its generation, with their leader epochs.

    The number of records is limited, because other programs may write any number of records. If a
    member could not store all of them, it must not announce itself.
    """

    def __init__(self) -> None:
        #: Whether all records since `clear` were stored.
        self.whole = True
        self._records: list[tuple[Announcement | AssignmentRecord, int]] = []
        self._named = 0

    def __iter__(self) -> Iterator[tuple[Announcement | AssignmentRecord, int]]:
        """Iterate over the records and their leader epochs, in the order of the log."""
        return iter(self._records)

    def add(self, record: Announcement | AssignmentRecord, epoch: int) -> None:
        """Store a record, unless there are too many; then `whole` becomes False."""
        shares = [record.given] if isinstance(record, Announcement) else record.shares.values()
        self._named += sum(len(numbers) for share in shares for numbers in share.values())
        if not self.whole or len(self._records) >= _MOST_RECORDS or self._named > _MOST_NAMED:
            self.whole = False
        else:
            self._records.append((record, epoch))

    def clear(self) -> None:
        """Remove all records."""
        self._records, self._named, self.whole = [], 0, True
