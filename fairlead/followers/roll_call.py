"""One roll call: how the members of one generation agree on who reads what, through a log.

Belongs here: the rules, as one member sees them, record by record. Does not: the log (`pins`), the
clock, nor what a client does with the verdict (`confluent`).

Every member announces itself and so cedes what range gave it. One of them then pins an assignment
of what was ceded, and the first pin of a generation in the log decides for everybody, whomever it
lists. Nothing can overlap: range's shares are disjoint, a pin deals out ceded shares alone, and
whoever announced owns nothing before the first pin. A member that comes late, or that knows no
plans, keeps what range gave it, which no pin deals out.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlead.followers.decision import why_not
from fairlead.followers.fit import fit
from fairlead.followers.members import GroupMember, member_names
from fairlead.followers.plan_cache import PlanState
from fairlead.plans.record import NOTHING, Identity

Partitions = Mapping[str, tuple[int, ...]]

#: Every partition is ceded, but members without any might still announce themselves.
UNSURE_S: Final = 0.15
#: Some partitions are not ceded: of members that are late, or that know no plans.
INCOMPLETE_S: Final = 1.0
#: How long each member leaves the one whose turn it is before, and how long a pin may take.
TURN_S: Final = 0.25
REPEAT_S: Final = 2.0


@dataclass(frozen=True)
class Here:
    """A member announces itself, and cedes what range gave it in this generation.

    Parameters
    ----------
    generation, member
        The group's generation and the member's id in it.
    client_id
        Its `client.id`, for its name in plans.
    topics
        Its subscription, ascending.
    given
        What range gave it.
    seen
        The newest record of the plan topic that it has read; NOTHING: none.
    """

    generation: int
    member: str
    client_id: str
    topics: tuple[str, ...]
    given: Partitions
    seen: Identity = NOTHING


@dataclass(frozen=True)
class Pin:
    """One member's proposal for a generation; the first in the log is the decision.

    Parameters
    ----------
    generation, member
        The generation, and who wrote it.
    topics
        The subscription it is for, ascending.
    shares
        Member id to topic to partition numbers. Lists every member heard that has this
        subscription, also those without a share; deals out what they ceded, and nothing else.
    plan_version
        The plan it follows; None: what range gave.
    seen
        The newest record of the plan topic that its writer had read; members that know a newer one
        ask for another rebalance.
    fallback_reason
        Why it follows no plan; None: it does.
    """

    generation: int
    member: str
    topics: tuple[str, ...]
    shares: Mapping[str, Partitions]
    plan_version: int | None = None
    seen: Identity = NOTHING
    fallback_reason: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What the first pin means for one member.

    Parameters
    ----------
    share
        What the member owns.
    listed
        Whether the pin counted on it; if not, it should ask for another rebalance.
    problem
        Why the member cannot take part in this group at all; None: it can.
    """

    share: Partitions
    listed: bool
    problem: str | None = None


class RollCall:
    """The roll call of one generation, as one of its members sees it.

    Parameters
    ----------
    me
        This member's announcement.
    partition_counts
        As for `expect`.

    Examples
    --------
    >>> me = Here(1, "m1", "a", ("t",), {"t": (0, 1)})
    >>> call = RollCall(me, {"t": 2})
    >>> call.hear(me, now=0.0)
    >>> call.pin_due_at()
    0.0
    >>> call.hear(draw_up(call.heard, PlanState(), now=datetime.max, member="m1"), now=0.1)
    >>> call.verdict()
    Verdict(share={'t': (0, 1)}, listed=True, problem=None)
    """

    def __init__(self, me: Here, partition_counts: Mapping[str, int]) -> None:
        self.me = me
        self.pin: Pin | None = None
        self._counts: dict[str, int] = {}
        self.expect(partition_counts)
        self._heard: dict[str, Here] = {}
        self._last_heard_at = 0.0
        self._pinned_at: float | None = None

    @property
    def heard(self) -> tuple[Here, ...]:
        """Who has announced itself before the first pin, in the order of the log."""
        return tuple(self._heard.values())

    def expect(self, partition_counts: Mapping[str, int]) -> None:
        """Tell how many partitions topics have, as far as known: when all of them are ceded.

        A wrong number costs time, or a late member's part in the plan, never agreement.
        """
        self._counts.update((t, n) for t, n in partition_counts.items() if t in self.me.topics)

    def hear(self, record: Here | Pin, now: float) -> None:
        """Take in the next record of the log; `now` is a monotonic time in seconds."""
        if record.generation != self.me.generation or self.pin is not None:
            return
        if isinstance(record, Pin):
            self.pin = record
        elif record.member not in self._heard:
            self._heard[record.member] = record
            self._last_heard_at = now

    def pin_due_at(self) -> float | None:
        """Return when this member should pin if nobody has by then; None: not yet known, or done.

        Whoever knows the newest plan goes first; among those the last to announce itself, who
        surely has read all the others.
        """
        if self.pin is not None or self.me.member not in self._heard:
            return None
        if self._pinned_at is not None:
            return self._pinned_at + REPEAT_S
        newest_last = sorted(self.heard, key=lambda here: here.seen.rank)  # stable
        turn = [here.member for here in reversed(newest_last)].index(self.me.member)
        return self._last_heard_at + self._patience_s() + turn * TURN_S

    def pinned(self, now: float) -> None:
        """Note that this member has pinned: the log will tell whether it was the first."""
        self._pinned_at = now

    def verdict(self) -> Verdict | None:
        """Return what the first pin means for this member; None: there is none yet."""
        if self.pin is None:
            return None
        share = self.pin.shares.get(self.me.member)
        if share is not None:
            return Verdict(share, listed=True)
        if self.me.topics != self.pin.topics:
            return Verdict(
                {},
                listed=False,
                problem=f"this consumer subscribes to {_text(self.me.topics)}, but its group to "
                f"{_text(self.pin.topics)}: plans through a log need equal subscriptions",
            )
        dealt = {pair for share in self.pin.shares.values() for pair in _pairs(share)}
        if dealt.isdisjoint(_pairs(self.me.given)):
            return Verdict(self.me.given, listed=False)
        return Verdict({}, listed=False)

    def _patience_s(self) -> float:
        """Return how long to wait for more announcements after the last one."""
        ceded = Counter(topic for topic, _ in {p for h in self.heard for p in _pairs(h.given)})
        if any(ceded[topic] < count for topic, count in self._counts.items()):
            return INCOMPLETE_S
        # Range gives nobody a second partition of a topic before everybody has one.
        if any(len(share) > 1 for here in self.heard for share in here.given.values()):
            return 0.0
        return UNSURE_S


def draw_up(heard: tuple[Here, ...], state: PlanState, *, now: datetime, member: str) -> Pin:
    """Return a pin for the members heard: the plan fitted to them, or what range gave them.

    Parameters
    ----------
    heard
        At least one announcement, all of one generation.
    state
        What is known of the plan.
    now
        Time-zone-aware: a plan whose lease is over is not followed.
    member
        Who writes the pin.
    """
    topics = _common_subscription(heard)
    heard = tuple(here for here in heard if here.topics == topics)
    plan, reason = state.plan, why_not(state, now)
    shares: Mapping[str, Partitions] = {here.member: here.given for here in heard}
    if plan is not None and reason is None:
        names = member_names(
            GroupMember(here.member, topics, client_id=here.client_id) for here in heard
        )
        ceded = {pair for here in heard for pair in _pairs(here.given)}
        counts: dict[str, int] = {}
        for topic, partition in ceded:
            counts[topic] = max(counts.get(topic, 0), partition + 1)
        fitted = fit(plan, dict.fromkeys(names.values(), topics), counts)
        shares = {member: _only(fitted[name], ceded) for member, name in names.items()}
    return Pin(
        generation=heard[0].generation,
        member=member,
        topics=topics,
        shares=shares,
        plan_version=plan.version if plan is not None and reason is None else None,
        seen=state.seen,
        fallback_reason=reason,
    )


def _common_subscription(heard: tuple[Here, ...]) -> tuple[str, ...]:
    """Return the subscription of most members; among equals the first in order."""
    votes = Counter(here.topics for here in heard)
    return min(votes, key=lambda topics: (-votes[topics], topics))


def _pairs(partitions: Partitions) -> set[tuple[str, int]]:
    return {(topic, number) for topic, numbers in partitions.items() for number in numbers}


def _only(share: Mapping[str, list[int]], allowed: set[tuple[str, int]]) -> Partitions:
    """Return a share without what may not be dealt out."""
    kept = {
        topic: tuple(number for number in numbers if (topic, number) in allowed)
        for topic, numbers in share.items()
    }
    return {topic: numbers for topic, numbers in kept.items() if numbers}


def _text(topics: tuple[str, ...]) -> str:
    return ", ".join(topics) or "nothing"
