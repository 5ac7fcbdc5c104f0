"""Reconciliation: how to make the plan topic agree with the database, group by group.

Belongs here: a table from the situation of a group to the next step. Belongs elsewhere: reading the
topic and the database, and carrying out a step (`fairlead.workflows.reconciling`).

The table also covers the situations after a crash, after a lost response, after another program
wrote a record, and when a lease must be renewed. Each step changes the situation, so that another
row of the table applies next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Final

from fairlead.wire.record import Kind

#: Seconds. Maximum time from an approval, by a person or a policy, to the publication.
PUBLISHED_WITHIN_S: Final = 30
#: Name of the sensor that reconciles groups; messages after an approval mention it.
SENSOR: Final = "approved_plans"
WHAT_FOLLOWS: Final = (
    f"the sensor {SENSOR} publishes it within {PUBLISHED_WITHIN_S} s, if the group has not changed "
    "since the plan was made"
)
WHO_TRIES_AGAIN: Final = f"the sensor {SENSOR} tries again"


class Action(Enum):
    """What to do for a group in the next step."""

    NOTHING = auto()
    SEND = auto()
    RENEW = auto()
    WITHDRAW = auto()
    FINISH = auto()
    DISCARD = auto()
    ALARM = auto()


class Lease(Enum):
    """Whether the lease of a published plan must be renewed now."""

    HOLDS = auto()
    DUE = auto()
    OVER = auto()


@dataclass(frozen=True)
class Objection:
    """Why a plan must not be sent.

    Parameters
    ----------
    reason
        A sentence.
    ends
        Whether the plan is permanently stale and is never sent. False: sending is tried again
        later.
    passing
        Whether the reason will pass soon, like a rebalance.
    """

    reason: str
    ends: bool = False
    passing: bool = False


@dataclass(frozen=True, kw_only=True)
class Situation:
    """State of a group in the database, in the plan topic and at the broker.

    Parameters
    ----------
    on_its_way
        Kind of the record in the outbox (the database's records to be sent): the record may already
        have been sent. None: the outbox has no record.
    arrived
        Whether the record in the outbox has arrived in the topic.
    approved
        Whether an approved plan waits to be published.
    objection
        Why the plan in the outbox, or the approved plan, must not be sent; None: no objection.
    followed
        Kind of the last record that was sent, according to the database: a plan, or a withdrawal.
    difference
        How the group's newest record in the topic differs from the last record that was sent
        according to the database; empty if it does not.
    damage
        What is wrong with the stored document of the published plan; empty if it is intact.
    lease
        Whether the lease of the published plan must be renewed.
    exists
        Whether the group exists; True if the broker was not asked.
    withdrawal
        Why the published plan must be withdrawn; empty if it may stay.
    """

    on_its_way: Kind | None = None
    arrived: bool = False
    approved: bool = False
    objection: Objection | None = None
    followed: Kind | None = None
    difference: str = ""
    damage: str = ""
    lease: Lease = Lease.HOLDS
    exists: bool = True
    withdrawal: str = ""

    @property
    def ends(self) -> bool:
        """Whether there is an objection that makes the plan permanently stale."""
        return self.objection is not None and self.objection.ends

    @property
    def why(self) -> str:
        """The objection in words."""
        return "" if self.objection is None else self.objection.reason

    @property
    def due(self) -> bool:
        """Whether the published plan's lease is to be renewed."""
        return self.followed == "plan" and self.lease is not Lease.HOLDS


@dataclass(frozen=True)
class NextStep:
    """The next step of a group. `reason` is empty if the situation explains the step."""

    action: Action
    reason: str = ""


_GONE: Final = "the group does not exist, and the lease of its plan has ended"
_GOING: Final = (
    "the group no longer exists: its plan is withdrawn when its lease ends, unless the group "
    "exists again by then"
)
#: Condition of a situation, action, reason. The first row whose condition is true decides.
TABLE: Final[Sequence[tuple[Callable[[Situation], object], Action, Callable[[Situation], str]]]] = (
    # There is a record in the outbox. Whether it has been sent is unknown.
    (lambda of: of.on_its_way and of.arrived, Action.FINISH, lambda _: ""),
    (lambda of: of.on_its_way == "withdrawn", Action.WITHDRAW, lambda _: ""),
    (lambda of: of.on_its_way and of.ends, Action.DISCARD, lambda of: of.why),
    (lambda of: of.on_its_way and of.objection, Action.ALARM, lambda of: of.why),
    (lambda of: of.on_its_way, Action.SEND, lambda _: ""),
    # A withdrawal or an approved plan waits to be sent.
    (
        lambda of: of.followed == "plan" and of.withdrawal,
        Action.WITHDRAW,
        lambda of: of.withdrawal,
    ),
    (lambda of: of.approved and of.objection is None, Action.SEND, lambda _: ""),
    (lambda of: of.approved and of.ends, Action.DISCARD, lambda of: of.why),
    (
        lambda of: of.due and of.lease is Lease.OVER and not of.exists,
        Action.WITHDRAW,
        lambda _: _GONE,
    ),
    # There is nothing new to send. The newest record in the topic should be the last one sent.
    (lambda of: of.damage and (of.difference or of.due), Action.ALARM, lambda of: of.damage),
    (lambda of: of.difference, Action.RENEW, lambda of: of.difference),
    (lambda of: of.due and of.exists, Action.RENEW, lambda _: ""),
    (lambda of: of.due, Action.ALARM, lambda _: _GOING),
    # An approved plan must wait, because the group is frozen or the plan cannot be checked now.
    (lambda of: of.approved, Action.ALARM, lambda of: of.why),
    (lambda _: True, Action.NOTHING, lambda _: ""),
)


def decide(group: Situation) -> NextStep:
    """Return the next step of a group according to `TABLE`.

    Examples
    --------
    >>> decide(Situation(approved=True)).action.name
    'SEND'
    >>> decide(Situation(followed="plan", lease=Lease.OVER, exists=False)).reason
    'the group does not exist, and the lease of its plan has ended'
    """
    return next(
        NextStep(action, reason(group)) for applies, action, reason in TABLE if applies(group)
    )


def renewed_after(lease: timedelta) -> timedelta:
    """Return the age at which to renew a lease: a third of its length.

    So two renewals can fail before the lease ends.

    Examples
    --------
    >>> renewed_after(timedelta(hours=6))
    datetime.timedelta(seconds=7200)
    """
    return lease / 3
