"""The rules of an agreement round, in which a generation's members agree on an assignment.

Belongs here: the rules, as one member applies them to each record. Belongs elsewhere: the records
(`fairlead.wire.agreement`), the log (`agreement_log`), the clock, and the consequences of a round
(`generation`, `member`).

A round begins after Kafka's `range` has assigned all partitions. Every member writes an
announcement to the log, by which it gives up its partitions from `range`. Then one member writes an
assignment record, which assigns all partitions that were given up. The first valid assignment
record of a generation decides, even for members that the record does not list. A late member, or a
consumer without a plan follower, gives up nothing and keeps its partitions from `range`.

No partition gets two owners: `range` assigns each partition once, an assignment record assigns only
partitions that were given up, and a member that announced itself owns nothing before the first
assignment record.

When another broker becomes the leader of the log's partition, the log can lose its last records,
and new records get the lost records' offsets. So an agreement round is limited to one leader epoch:
members ignore announcements of other epochs, and an assignment record decides only for members of
its own epoch. Within one epoch all members read the same records.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fairlead.followers.core.plan_cache import PlanState
from fairlead.followers.core.plan_or_fallback import why_not
from fairlead.wire.agreement import Announcement, AssignmentRecord
from fairlead.wire.fit import fit
from fairlead.wire.members import GroupMember, member_names
from fairlead.wire.partitions import Pair, Partitions, pairs

#: Seconds to wait for further announcements if all partitions were given up. Only members to which
#: `range` assigned no partitions can be missing.
UNSURE_S: Final = 0.15
#: Seconds to wait for further announcements if some partitions were not given up. The owners of
#: these partitions are late members, or consumers without a plan follower.
INCOMPLETE_S: Final = 1.0
#: Seconds. Longest wait after the first announcement, if more announcements keep arriving.
LONGEST_S: Final = 2.0
#: Seconds. If a member does not write the assignment record in this time, the next member writes
#: one.
TURN_S: Final = 0.25
#: Seconds. If a member has written an assignment record but has read none in the log, the member
#: writes another one after this time.
REPEAT_S: Final = 2.0


@dataclass(frozen=True)
class Verdict:
    """The effect of the first assignment record on one member.

    Parameters
    ----------
    share
        The partitions that the member owns.
    listed
        Whether the assignment record lists the member. An unlisted member should request another
        rebalance.
    problem
        Why the member can never take part in this group's rounds; None: it can.
    """

    share: Partitions
    listed: bool
    problem: str | None = None


@dataclass
class _EpochRecords:
    """The records that were written in one leader epoch of the coordination log."""

    heard: dict[str, Announcement] = field(default_factory=dict)
    given_up: set[Pair] = field(default_factory=set)
    #: Maps each topic to the number of its partitions that were given up.
    counts: Counter[str] = field(default_factory=Counter)
    #: Whether some member gave up two or more partitions of one topic.
    doubled: bool = False
    assignment: AssignmentRecord | None = None

    def take(self, announcement: Announcement, share: set[Pair]) -> None:
        """Add an announcement by which a member gives up the partitions in `share`."""
        self.heard[announcement.member] = announcement
        self.given_up |= share
        counts = {topic: len(numbers) for topic, numbers in announcement.given.items()}
        self.counts.update(counts)
        self.doubled = self.doubled or any(count > 1 for count in counts.values())


class AgreementRound:
    """The agreement round of one generation, as one member sees it.

    Parameters
    ----------
    me
        This member's announcement.
    partition_counts
        Maps each topic to its number of partitions, as for `expect`.

    Examples
    --------
    >>> me = Announcement(1, "m1", "a", ("t",), {"t": (0, 1)})
    >>> round_ = AgreementRound(me, {"t": 2})
    >>> round_.hear(me, now=0.0)
    >>> round_.write_due_at()
    0.0
    >>> round_.hear(draw_up(round_.heard, PlanState(), now=datetime.max, member="m1"), now=0.1)
    >>> round_.verdict()
    Verdict(share={'t': (0, 1)}, listed=True, problem=None)
    """

    def __init__(self, me: Announcement, partition_counts: Mapping[str, int]) -> None:
        self.me = me
        self._counts: dict[str, int] = {}
        self.expect(partition_counts)
        self._epochs: dict[int, _EpochRecords] = {}
        self._announced: set[str] = set()
        self._own_records: _EpochRecords | None = None
        self._epoch = self._last_epoch = -1
        self._first_heard_at: float | None = None
        self._last_heard_at = 0.0
        #: When this member wrote the assignment last; None: not yet.
        self.written_at: float | None = None

    @property
    def heard(self) -> tuple[Announcement, ...]:
        """All announcements that precede the first assignment record, in the order of the log."""
        return tuple(self._own_records.heard.values()) if self._own_records else ()

    @property
    def assignment(self) -> AssignmentRecord | None:
        """The assignment record that decides for this member; None: not read yet."""
        return self._own_records.assignment if self._own_records else None

    @property
    def announced(self) -> bool:
        """Whether this member has read its own announcement in the coordination log."""
        return self._own_records is not None

    @property
    def superseded(self) -> bool:
        """Whether a later leader epoch began before this member read an assignment record."""
        return (
            self._own_records is not None
            and self.assignment is None
            and self._last_epoch > self._epoch
        )

    @property
    def over(self) -> bool:
        """Whether an assignment record has decided, in any leader epoch."""
        return any(present.assignment is not None for present in self._epochs.values())

    def expect(self, partition_counts: Mapping[str, int]) -> None:
        """Set the number of partitions of each topic, to detect when all were given up.

        If a number is wrong, this member may wait too long, or not long enough for a late member.
        Even then, no partition gets two owners.
        """
        self._counts.update((t, n) for t, n in partition_counts.items() if t in self.me.topics)

    def hear(self, record: Announcement | AssignmentRecord, now: float, *, epoch: int = 0) -> None:
        """Apply the next record of the coordination log.

        Parameters
        ----------
        record
            The record; ignored if its generation or log differs from this member's.
        now
            A monotonic time in seconds.
        epoch
            The leader epoch in which the record was written.
        """
        if (record.generation, record.log) != (self.me.generation, self.me.log):
            return
        present = self._epochs.setdefault(epoch, _EpochRecords())
        self._last_epoch = max(self._last_epoch, epoch)
        if isinstance(record, AssignmentRecord):
            if present.assignment is None and _is_valid(record, present.heard):
                present.assignment = record
            return
        if record.member in self._announced:
            return
        self._announced.add(record.member)
        if record.member == self.me.member:
            self._own_records, self._epoch = present, epoch
        share = set(pairs(record.given))
        # `range` assigns no partition to two members. If an announcement repeats a partition, it is
        # from a deleted group of the same name.
        if present.assignment is None and present.given_up.isdisjoint(share):
            present.take(record, share)
            self._last_heard_at = now
            if self._first_heard_at is None:
                self._first_heard_at = now

    def write_due_at(self) -> float | None:
        """Return when this member should write an assignment; None: not yet known, or not needed.

        The member that has read the newest plan record writes first. If several members have read
        that record, the member whose announcement is last in the log writes first, because this
        member has read the announcements of all others.
        """
        present = self._own_records
        if present is None or present.assignment is not None or self.me.member not in present.heard:
            return None
        if self.written_at is not None:
            return self.written_at + REPEAT_S
        # The sort is stable: members that have read the same plan record keep their order.
        newest_last = sorted(self.heard, key=lambda announcement: announcement.seen.rank)
        turn = [announcement.member for announcement in reversed(newest_last)].index(self.me.member)
        first = self._last_heard_at if self._first_heard_at is None else self._first_heard_at
        complete_at = self._last_heard_at + self._patience_s(present)
        return min(complete_at, first + LONGEST_S) + turn * TURN_S

    def verdict(self) -> Verdict | None:
        """Return the effect of the first assignment record on this member; None: not read yet."""
        assignment = self.assignment
        if assignment is None:
            return None
        share = assignment.shares.get(self.me.member)
        if share is not None:
            return Verdict(share, listed=True)
        if self.me.topics != assignment.topics:
            return Verdict(
                {},
                listed=False,
                problem=f"this consumer subscribes to {_text(self.me.topics)}, but its group to "
                f"{_text(assignment.topics)}: members must subscribe to the same topics",
            )
        assigned = {pair for share in assignment.shares.values() for pair in pairs(share)}
        if assigned.isdisjoint(pairs(self.me.given)):
            return Verdict(self.me.given, listed=False)
        return Verdict({}, listed=False)

    def _patience_s(self, present: _EpochRecords) -> float:
        """Return the seconds to wait for further announcements after the last one that was read."""
        if any(present.counts[topic] < count for topic, count in self._counts.items()):
            return INCOMPLETE_S
        # All partitions were given up. If `range` gave one member two partitions of a topic, it
        # gave every member at least one, so every member has announced itself by giving it up.
        return 0.0 if present.doubled else UNSURE_S


def draw_up(
    heard: tuple[Announcement, ...], state: PlanState, *, now: datetime, member: str
) -> AssignmentRecord:
    """Return an assignment record for the announced members.

    The record follows the plan if possible, and otherwise repeats the assignment by `range`.

    Parameters
    ----------
    heard
        The announcements, at least one, all of one generation.
    state
        The writer's knowledge of the plan.
    now
        The present time, time-zone-aware; a plan whose lease has expired is not followed.
    member
        The member that writes the assignment record.
    """
    topics = _common_subscription(heard)
    heard = tuple(announcement for announcement in heard if announcement.topics == topics)
    plan, reason = state.plan, why_not(state, now)
    shares: Mapping[str, Partitions] = {
        announcement.member: announcement.given for announcement in heard
    }
    if plan is not None and reason is None:
        names = member_names(
            GroupMember(announcement.member, topics, client_id=announcement.client_id)
            for announcement in heard
        )
        given_up = {pair for announcement in heard for pair in pairs(announcement.given)}
        counts: dict[str, int] = {}
        for topic, partition in given_up:
            counts[topic] = max(counts.get(topic, 0), partition + 1)
        fitted = fit(plan, dict.fromkeys(names.values(), topics), counts)
        shares = {member: _only(fitted[name], given_up) for member, name in names.items()}
    return AssignmentRecord(
        generation=heard[0].generation,
        member=member,
        topics=topics,
        shares=shares,
        plan_version=plan.version if plan is not None and reason is None else None,
        seen=state.seen,
        fallback_reason=reason,
        log=heard[0].log,
    )


def _is_valid(assignment: AssignmentRecord, heard: Mapping[str, Announcement]) -> bool:
    """Whether an assignment record is valid.

    The record must have the most common subscription, and assign exactly the partitions that the
    listed members gave up.
    """
    range_shares = {
        member: heard[member].given
        for member in assignment.shares
        if member in heard and heard[member].topics == assignment.topics
    }
    return assignment.assigns_exactly(range_shares) and assignment.topics == _common_subscription(
        tuple(heard.values())
    )


def _common_subscription(heard: tuple[Announcement, ...]) -> tuple[str, ...]:
    """Return the most common subscription; among equally common ones, the first in sort order."""
    votes = Counter(announcement.topics for announcement in heard)
    return min(votes, key=lambda topics: (-votes[topics], topics))


def _only(share: Mapping[str, list[int]], allowed: set[Pair]) -> Partitions:
    """Return the partitions in `share` that are also in `allowed`."""
    filtered = {
        topic: tuple(number for number in numbers if (topic, number) in allowed)
        for topic, numbers in share.items()
    }
    return {topic: numbers for topic, numbers in filtered.items() if numbers}


def _text(topics: tuple[str, ...]) -> str:
    return ", ".join(topics) or "nothing"
