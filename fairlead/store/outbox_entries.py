"""Intents: what is to stand under a group's key in the plan topic.

Belongs here: what is asked for, what is recorded of it, and the states of a plan on the way. Does
not: any statement (`outbox`, `settlement`).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlead.domain.records import StoredPlan
from fairlead.wire.record import Kind

#: The states that a plan can be in when it is told, and when it is taken back; the state it is in
#: on the way, and afterwards.
POSSIBLE: Final = {"plan": ("approved", "published"), "retired": ("published", "retired")}
ON_ITS_WAY: Final[dict[Kind, str]] = {"plan": "sending", "retired": "published"}
FOLLOWED: Final[dict[Kind, str]] = {"plan": "published", "retired": "retired"}


@dataclass(frozen=True)
class OutboxEntry:
    """What is to stand under a group's key.

    Parameters
    ----------
    plan
        The version that is told or retired.
    kind
        Which of the two.
    epoch, lease_until
        As the record will say.
    again
        Whether the group is just told again of what it follows: no step of the plan.
    reason, actor
        Of a retirement.
    """

    plan: StoredPlan
    kind: Kind
    epoch: int
    lease_until: datetime | None
    again: bool = False
    reason: str = ""
    actor: str | None = None

    @property
    def group(self) -> str:
        """Whose."""
        return self.plan.group

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells it from any other of its group: kind, version and epoch."""
        return self.kind, self.plan.version, self.epoch


@dataclass(frozen=True)
class PublishRequest:
    """What somebody asks to be sent; whether it still can be is seen under the group's lock.

    Parameters
    ----------
    group, version
        The plan.
    kind
        `plan`: publish it where it is approved, tell it again where it is published. `retired`:
        take it back where it is published, say so again where it is retired.
    lease_until
        Until when a plan is to hold.
    beyond
        An epoch that it must go beyond; None: it keeps its own.
    reason, actor
        Of a retirement.
    """

    group: str
    version: int
    kind: Kind = "plan"
    lease_until: datetime | None = None
    beyond: int | None = None
    reason: str = ""
    actor: str | None = None
