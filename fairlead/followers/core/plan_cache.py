"""The last good plan of one group, record by record.

Belongs here: what a record of the plan topic means to a follower, after those before it. Does not:
fetching records (`plan_reader`), nor whether one is to be believed by itself
(`fairlead.wire.record_reading`).
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
    """One record of the plan topic; `value` None is a tombstone."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass(frozen=True)
class PlanState:
    """What a follower knows of its group's plan.

    Parameters
    ----------
    plan
        The last good plan; None: there is none, or it was withdrawn.
    seen
        What the record that said so is known by; NOTHING: there was none.
    lease_until
        When the plan lapses unless it is told again; None: never.
    problem
        Why the newest record was skipped, if it was.
    skipped
        Records skipped so far.
    """

    plan: PlanDocument | None = None
    seen: Identity = NOTHING
    lease_until: datetime | None = None
    problem: str | None = None
    skipped: int = 0


class PlanCache:
    """Keeps the state of one group's plan.

    Of two records the one of the later epoch counts, within an epoch that of the higher version,
    and a version's withdrawal after its plan; lower ones are ignored. The same version again
    extends the lease, and changes nothing else. A record that cannot be read, that is not signed as
    it must be, or that gives a known version other bytes, is skipped with a warning and the last
    good plan stays. A tombstone is heeded where no keys are configured.

    Parameters
    ----------
    group
        The group id; its UTF-8 bytes are the key.
    origin
        Where the records are read.
    verifier
        With it, they must be signed with a key that it knows; None: with none.
    known
        What was known before this connection: its plan stays until a later record or the end of
        its lease, whatever has become of the record.
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
        #: What was known before, until it is read again: tombstones that stand before it in the
        #: log took back something else.
        self._unread = self.state.seen if self.state.plan is not None else None

    def apply(self, record: PlanRecord) -> None:
        """Take one record in, in the order of offsets."""
        if record.key != self._key:
            return
        if record.value is None:
            self._bury(record)
            return
        try:
            told = read_record(
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
        again = told.identity == self._unread
        if again:
            self._unread = None
        if told.identity.rank > seen.rank or (again and self.state.plan is None):
            self._replace(told, record)
        elif told.identity.rank < seen.rank:
            log.debug(
                "Group %s: plan version %d at offset %d ignored: version %d is newer",
                self._group,
                told.identity.version,
                record.offset,
                seen.version,
            )
        elif told.identity.sha256 != seen.sha256:
            self._skip(record, f"Version {seen.version} is known with other bytes")
        else:
            self._extend(told.lease_until)

    def _replace(self, told: VerifiedRecord, record: PlanRecord) -> None:
        log.info(
            "Group %s: plan version %d %s (offset %d)",
            self._group,
            told.identity.version,
            f"read, by {told.plan.assignor}" if told.plan else "was withdrawn",
            record.offset,
        )
        self.state = PlanState(
            told.plan, told.identity, told.lease_until, skipped=self.state.skipped
        )

    def _extend(self, until: datetime | None) -> None:
        """Take note that the plan holds for longer; it never holds for less."""
        known = self.state.lease_until
        if known is not None and (until is None or until > known):
            self.state = replace(self.state, lease_until=until)
        self.state = replace(self.state, problem=None)

    def _bury(self, record: PlanRecord) -> None:
        """Heed a tombstone, which nobody can sign, where nothing needs to be signed."""
        if self._verifier is not None:
            self._skip(record, "A tombstone is not signed")
            return
        log.info(
            "Group %s: the plan was withdrawn (tombstone at offset %d)",
            self._group,
            record.offset,
        )
        epoch, version, *_ = self.state.seen
        gone = Identity(epoch, version, retired=True)
        self.state = PlanState(None, gone, skipped=self.state.skipped)

    def _skip(self, record: PlanRecord, problem: str) -> None:
        kept = self.state.plan
        log.warning(
            "Group %s: the plan record at offset %d is skipped: %s. %s",
            self._group,
            record.offset,
            problem,
            f"Version {kept.version} stays" if kept else "There is no earlier plan to keep",
        )
        self.state = replace(self.state, problem=problem, skipped=self.state.skipped + 1)
