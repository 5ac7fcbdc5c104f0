"""The last valid plan of one group, updated with each record of the plan topic.

Belongs here: the effect of a record, which depends on earlier records. Belongs elsewhere: fetching
records (`plan_reader`), and validating a single record (`fairlead.wire.record_reading`).
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from fairlead.errors import InvalidPlanError
from fairlead.wire.document import PlanDocument
from fairlead.wire.record import NOTHING, Identity, Origin
from fairlead.wire.record_reading import VerifiedRecord, read_record
from fairlead.wire.signing import Verifier

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanRecord:
    """One record of the plan topic; a record with `value` None is a tombstone."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass(frozen=True)
class PlanState:
    """A plan follower's knowledge of its group's plan.

    Parameters
    ----------
    plan
        The last valid plan; None: there is none, or it was withdrawn.
    seen
        Identity of the newest valid record, a plan or a withdrawal; NOTHING: no such record.
    lease_until
        When the plan expires unless it is renewed; None: never.
    problem
        Why the newest record was skipped, or why the topic cannot be read; None: no problem.
    skipped
        Number of records skipped so far.
    """

    plan: PlanDocument | None = None
    seen: Identity = NOTHING
    lease_until: datetime | None = None
    problem: str | None = None
    skipped: int = 0


class PlanCache:
    """Keeps the state of one group's plan.

    A record with a later epoch replaces the plan. Within an epoch, a higher version replaces a
    lower one, and the withdrawal of a version replaces its plan. Older records are ignored. A
    record with the same version and bytes can only extend the lease.

    A record is skipped with a warning if it cannot be read, has no valid signature, or has the
    present version but other bytes. The last valid plan is then kept. A tombstone is accepted only
    if no keys are configured.

    Parameters
    ----------
    group
        The group id; its UTF-8 bytes are the key.
    origin
        The plan topic.
    verifier
        Checks signatures; None: records need no signature.
    known
        The state before this connection. The known plan is kept until a later record replaces it or
        the lease ends, even if the topic does not contain the plan's record any more.
    """

    def __init__(
        self,
        group: str,
        origin: Origin,
        verifier: Verifier | None,
        *,
        known: PlanState | None = None,
    ) -> None:
        self.state = PlanState() if known is None else replace(known, problem=None)
        self._group = group
        self._key = group.encode()
        self._origin = origin
        self._verifier = verifier
        #: Identity of the plan in `known`; None as soon as this connection has read its record. A
        #: tombstone before this record belongs to an older plan: the record restores the known one.
        self._unread = self.state.seen if self.state.plan is not None else None

    def apply(self, record: PlanRecord) -> None:
        """Apply one record; the calls must follow the order of offsets."""
        if record.key != self._key:
            return
        if record.value is None:
            self._accept_tombstone(record)
            return
        try:
            verified = read_record(
                record.value,
                record.headers,
                group=self._group,
                origin=self._origin,
                verifier=self._verifier,
            )
        except InvalidPlanError as error:
            self._skip(record, str(error))
            return
        seen = self.state.seen
        again = verified.identity == self._unread
        if again:
            self._unread = None
        if verified.identity.rank > seen.rank or (again and self.state.plan is None):
            self._replace(verified, record)
        elif verified.identity.rank == seen.rank and verified.identity.sha256 != seen.sha256:
            self._skip(record, f"Version {seen.version} was already read, with another content")
        elif verified.identity.rank == seen.rank:
            self._extend(verified.lease_until)

    def _replace(self, verified: VerifiedRecord, record: PlanRecord) -> None:
        log.info(
            "Group %s: plan version %d %s (offset %d)",
            self._group,
            verified.identity.version,
            f"read, by {verified.plan.assignor}" if verified.plan else "was withdrawn",
            record.offset,
        )
        self.state = PlanState(
            verified.plan, verified.identity, verified.lease_until, skipped=self.state.skipped
        )

    def _extend(self, until: datetime | None) -> None:
        """Set a later end of the lease; ignore an earlier one."""
        known = self.state.lease_until
        later = known is not None and (until is None or until > known)
        self.state = replace(self.state, lease_until=until if later else known, problem=None)

    def _accept_tombstone(self, record: PlanRecord) -> None:
        """Treat a tombstone as a withdrawal; skip it if signatures are required."""
        if self._verifier is not None:
            self._skip(record, "A tombstone is not signed")
            return
        log.info(
            "Group %s: the plan was withdrawn (tombstone at offset %d)",
            self._group,
            record.offset,
        )
        epoch, version, *_ = self.state.seen
        withdrawal = Identity(epoch, version, withdrawn=True)
        self.state = PlanState(None, withdrawal, skipped=self.state.skipped)

    def _skip(self, record: PlanRecord, problem: str) -> None:
        plan = self.state.plan
        log.warning(
            "Group %s: the plan record at offset %d is skipped: %s. %s",
            self._group,
            record.offset,
            problem,
            f"Version {plan.version} stays in force"
            if plan
            else "There is no earlier plan to keep",
        )
        self.state = replace(self.state, problem=problem, skipped=self.state.skipped + 1)
