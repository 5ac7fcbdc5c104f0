"""The last good plan of one group, record by record.

Belongs here: what a record of the plan topic means to a follower. Does not: fetching records
(`plan_reader`).
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairlead.errors import InvalidPlanError
from fairlead.plans.document import PlanDocument, check_headers

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
        The last good plan; None: there is none, or a tombstone took it back.
    offset
        Of the record that said so; -1: none yet.
    problem
        Why the newest record was skipped, if it was.
    skipped
        Records skipped so far.
    """

    plan: PlanDocument | None = None
    offset: int = -1
    problem: str | None = None
    skipped: int = 0


class PlanCache:
    """Keeps the state of one group's plan.

    Lower and equal versions are ignored. A record that cannot be read, or whose signature is wrong,
    is skipped with a warning and the last good plan stays. A tombstone clears it.

    Parameters
    ----------
    group
        The group id; its UTF-8 bytes are the key.
    signing_key
        With it, records must carry a matching HMAC-SHA256 signature.
    """

    def __init__(self, group: str, *, signing_key: bytes | None = None) -> None:
        self.state = PlanState()
        self._group = group
        self._key = group.encode()
        self._signing_key = signing_key

    def apply(self, record: PlanRecord) -> None:
        """Take one record in, in the order of offsets."""
        if record.key != self._key:
            return
        if record.value is None:
            log.info(
                "Group %s: the plan was withdrawn (tombstone at offset %d)",
                self._group,
                record.offset,
            )
            self._replace(None, record)
            return
        try:
            check_headers(record.value, record.headers, signing_key=self._signing_key)
            plan = PlanDocument.from_bytes(record.value, group=self._group)
        except InvalidPlanError as error:
            self._skip(record, str(error))
            return
        current = self.state.plan
        if current is not None and plan.version <= current.version:
            log.debug(
                "Group %s: plan version %d at offset %d ignored: version %d is newer",
                self._group,
                plan.version,
                record.offset,
                current.version,
            )
            return
        log.info(
            "Group %s: plan version %d read (%s, offset %d)",
            self._group,
            plan.version,
            plan.assignor,
            record.offset,
        )
        self._replace(plan, record)

    def _replace(self, plan: PlanDocument | None, record: PlanRecord) -> None:
        self.state = PlanState(plan, record.offset, skipped=self.state.skipped)

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
