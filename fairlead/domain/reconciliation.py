"""Reconciliation: the next step of a group whose plan topic and database may differ.

Belongs here: the table of steps, as a pure function. Belongs elsewhere: reading the topic and the
database, or carrying out a step (`fairlead.workflows.reconciling`).

The table also covers the situations after a crash, after a lost response, after another program
wrote a record, and when a lease is due. Each step leads to another row of the table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Final

from fairlead.wire.record import Kind

#: Seconds. Maximum time from any kind of approval to the publication.
PUBLISHED_WITHIN_S: Final = 30
#: Name of the sensor that reconciles groups; messages after an approval mention it.
SENSOR: Final = "approved_plans"
WHAT_FOLLOWS: Final = (
    f"the sensor {SENSOR} publishes it within {PUBLISHED_WITHIN_S} s, if the group has not changed "
    "since the plan was made"
)
WHO_TRIES_AGAIN: Final = f"the sensor {SENSOR} tries again"


class Action(Enum):
    """What a step does."""

    NOTHING = auto()
    SEND = auto()
    RENEW = auto()
    WITHDRAW = auto()
    FINISH = auto()
    DISCARD = auto()
    ALARM = auto()


class Lease(Enum):
    """Whether a published plan's lease is to be renewed."""

    HOLDS = auto()
    DUE = auto()
    OVER = auto()


@dataclass(frozen=True)
class Objection:
    """Why a plan may not be sent.

    Parameters
    ----------
    reason
        A sentence.
    ends
        Whether the objection makes the plan permanently stale; False: the plan waits, and is tried
        again.
    passing
        Whether the reason is temporary, like a rebalance.
    """

    reason: str
    ends: bool = False
    passing: bool = False


@dataclass(frozen=True, kw_only=True)
class Situation:
    """State of a group in the database, in the topic and at the broker.

    Parameters
    ----------
    on_its_way
        Kind of the record in the outbox, which may or may not have been sent; None: no record.
    arrived
        Whether that record is in the topic.
    approved
        Whether an approved plan waits for publication.
    objection
        Objection to sending the plan that is in the outbox or approved.
    followed
        Kind of the record that the database last stored as sent: a plan, or a withdrawal.
    difference
        How the group's newest record in the topic differs from that record; empty if equal.
    damage
        The error of the published plan's stored document; empty if it is intact.
    lease
        Lease of the published plan.
    exists
        Whether the group exists; True if the broker was not asked.
    withdrawal
        Why the published plan is to be withdrawn; empty if it is not.
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
    """The next step of a group, with the reason if the situation does not imply one."""

    action: Action
    reason: str = ""


_GONE: Final = "the group does not exist, and its lease has ended"
_GOING: Final = (
    "the group no longer exists: its plan is withdrawn when its lease ends, unless the group "
    "exists again by then"
)
#: Condition of a situation, action, reason. The first row whose condition is true decides.
TABLE: Final[Sequence[tuple[Callable[[Situation], object], Action, Callable[[Situation], str]]]] = (
    # There is a record in the outbox, which may or may not have been sent.
    (lambda of: of.on_its_way and of.arrived, Action.FINISH, lambda _: ""),
    (lambda of: of.on_its_way == "withdrawn", Action.WITHDRAW, lambda _: ""),
    (lambda of: of.on_its_way and of.ends, Action.DISCARD, lambda of: of.why),
    (lambda of: of.on_its_way and of.objection, Action.ALARM, lambda of: of.why),
    (lambda of: of.on_its_way, Action.SEND, lambda _: ""),
    # A change waits to be sent.
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
    # Nothing changes, so the topic should have the record that was last sent.
    (lambda of: of.damage and (of.difference or of.due), Action.ALARM, lambda of: of.damage),
    (lambda of: of.difference, Action.RENEW, lambda of: of.difference),
    (lambda of: of.due and of.exists, Action.RENEW, lambda _: ""),
    (lambda of: of.due, Action.ALARM, lambda _: _GOING),
    # An approved plan waits, because it is frozen or cannot be checked now.
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
    'the group does not exist, and its lease has ended'
    """
    return next(
        NextStep(action, reason(group)) for applies, action, reason in TABLE if applies(group)
    )


def renewed_after(lease: timedelta) -> timedelta:
    """Return the age at which to renew a lease: a third of it, so that two renewals may fail.

    Examples
    --------
    >>> renewed_after(timedelta(hours=6))
    datetime.timedelta(seconds=7200)
    """
    return lease / 3
