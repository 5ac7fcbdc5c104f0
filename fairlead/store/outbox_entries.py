"""Outbox entries: records that are about to be sent to the plan topic.

Belongs here: requests, entries, the states of a plan while it is sent, and a group's plans and
records in the database. Belongs elsewhere: statements (`outbox`, `settlement`).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fairlead.domain.records import StoredPlan
from fairlead.store.published_records import PublishedRecord
from fairlead.wire.record import Kind

#: For each kind of record: the states of a plan in which the record can be sent, the plan's state
#: while the record is being sent, and the plan's state afterwards.
POSSIBLE: Final = {"plan": ("approved", "published"), "withdrawn": ("published", "withdrawn")}
ON_ITS_WAY: Final[dict[Kind, str]] = {"plan": "sending", "withdrawn": "published"}
FOLLOWED: Final[dict[Kind, str]] = {"plan": "published", "withdrawn": "withdrawn"}


@dataclass(frozen=True)
class OutboxEntry:
    """A record that is about to be sent.

    Parameters
    ----------
    plan
        The version that is sent or withdrawn.
    kind
        `plan` to publish the version, `withdrawn` to withdraw it.
    epoch, lease_until
        The record's epoch, and the time at which its lease ends.
    again
        Whether the record is sent again, which does not change the plan's state.
    reason, actor
        Why the plan is withdrawn, and the person who requested it.
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
        """The plan's group."""
        return self.plan.group

    @property
    def key(self) -> tuple[str, int, int]:
        """Kind, version and epoch: no other entry of the group has all three."""
        return self.kind, self.plan.version, self.epoch


@dataclass(frozen=True)
class PublishRequest:
    """A record to send if, after the group is locked, the plan's state still allows that.

    Parameters
    ----------
    group, version
        The plan.
    kind
        `plan`: publish an approved plan, or send a published one again. `withdrawn`: withdraw a
        published plan, or send the withdrawal again.
    lease_until
        Time at which the plan expires unless it is renewed.
    beyond
        An epoch that the record's epoch must exceed; None: no new epoch is needed.
    reason, actor
        Why the plan is withdrawn, and the person who requested it.
    """

    group: str
    version: int
    kind: Kind = "plan"
    lease_until: datetime | None = None
    beyond: int | None = None
    reason: str = ""
    actor: str | None = None


@dataclass(frozen=True)
class Standing:
    """A group's plans and records, as the database has them.

    Parameters
    ----------
    entry
        The pending entry; None if there is none.
    approved
        The plan that waits for publication.
    followed
        The published version. If none is published: the version that was withdrawn last, if its
        withdrawal is the group's last record.
    record
        The last record that is stored as sent.
    """

    group: str
    entry: OutboxEntry | None
    approved: StoredPlan | None
    followed: StoredPlan | None
    record: PublishedRecord | None
