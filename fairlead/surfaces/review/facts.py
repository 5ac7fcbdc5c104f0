"""What is known of a version that is reviewed, gathered from the store and verified.

Belongs here: reading, and reconstructing what the group had before. Does not: assessing
it (`risks`), wording it (`page`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine

from fairlead.domain.as_problem import Ownership, planned
from fairlead.domain.candidate_figures import SnapshotCandidate
from fairlead.domain.consumers import ConsumerChange, changes
from fairlead.domain.records import Analysed, MemberLoad, StoredPlan
from fairlead.domain.work_text import times_by_partition
from fairlead.errors import InvalidPlanError, TamperedPlanError
from fairlead.store import PlanStore
from fairlead.store.history_queries import (
    Row,
    read_analysed,
    read_candidates,
    read_plan,
    read_statuses,
)
from fairlead.wire.document import PlanDocument


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """All that is known of one version.

    Parameters
    ----------
    plan
        The version as `read_plan` has it, with its events and moves.
    stored
        The same with its bytes.
    document
        The bytes, verified and read; None where they do not verify.
    broken
        Why they do not verify; None where they do.
    predicted
        Metrics of the plan, on its snapshot.
    consumers
        Every consumer before and after, the heaviest first; none where the bytes do not verify.
    analysed
        What the analysis counted with when the plan was made; None: nothing was analysed.
    candidates
        What every assignor would have done, the lightest first; none for a rollback or a renewal.
    statuses
        Partitions by status in the plan's snapshot; none where that is not stored any more.
    now
        When all this was read; time-zone-aware.
    """

    plan: Row
    stored: StoredPlan
    document: PlanDocument | None
    broken: str | None
    predicted: Mapping[str, Any]
    consumers: Sequence[ConsumerChange]
    analysed: Analysed | None
    candidates: Sequence[SnapshotCandidate]
    statuses: Sequence[Row]
    now: datetime

    @property
    def waits(self) -> bool:
        """Whether the plan can still be approved, as far as its state and its time go."""
        return self.stored.state == "proposed" and not self.expired

    @property
    def expired(self) -> bool:
        """Whether the plan's time is over, whatever its state still says."""
        expires_at = self.stored.expires_at
        return expires_at is not None and expires_at <= self.now

    @property
    def loads(self) -> list[tuple[str, MemberLoad]]:
        """Every member's load, the one at which most arrives under the plan first."""
        members = {} if self.analysed is None else self.analysed.members
        return sorted(members.items(), key=lambda item: (-item[1].after, item[0]))

    @property
    def times(self) -> list[tuple[str, str]]:
        """Partitions and how long their records take, the most expensive first."""
        analysed = self.analysed
        return times_by_partition(analysed.reported, analysed.costs) if analysed else []

    @property
    def busy(self) -> Mapping[str, float | None]:
        """Reported busy share by consumer; empty if none reports."""
        return {} if self.analysed is None else self.analysed.reported.get("consumers", {})

    @property
    def partitions(self) -> int | None:
        """How many partitions the plan is about; None where its bytes do not verify."""
        return None if self.document is None else sum(self.document.partition_counts.values())


def gather(engine: Engine, group: str, version: int | None, now: datetime) -> Facts:
    """Read what is known of a version.

    Parameters
    ----------
    version
        None: the newest.

    Raises
    ------
    GroupError
        Nothing is stored of the group.
    PlanStateError
        There is no such version.
    """
    plan = read_plan(engine, group, version)
    store = PlanStore(engine)
    stored = store.get(group, plan["version"])
    document, broken = None, None
    try:
        document = stored.verify()
    except (InvalidPlanError, TamperedPlanError) as error:
        broken = str(error)
    return Facts(
        plan=plan,
        stored=stored,
        document=document,
        broken=broken,
        predicted=store.predicted([stored]).get((group, stored.version), {}),
        consumers=[]
        if document is None
        else changes(document, before(document, plan["moves"]), planned(document)),
        analysed=read_analysed(engine, group, stored.version),
        candidates=read_candidates(engine, group, stored.snapshot_id),
        statuses=read_statuses(engine, group, at=stored.snapshot_at),
        now=now,
    )


def before(document: PlanDocument, moves: Sequence[Mapping[str, Any]]) -> Ownership:
    """Return who owned what in the plan's snapshot: what the plan gives, with its moves undone.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import UTC
    >>> from fairlead.wire.document import MemberShare
    >>> share = MemberShare(("t",), {"t": np.array([0, 1], np.int32)})
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> document = PlanDocument("g", 1, "id", "fair", day, day, {"t": 2}, {"b": share})
    >>> move = {"topic": "t", "partition": 1, "previous_member": "a", "member": "b"}
    >>> before(document, [move])
    {'b': {'t': {0}}, 'a': {'t': {1}}}
    """
    owned = {
        name: {topic: set(numbers) for topic, numbers in share.items()}
        for name, share in planned(document).items()
    }
    for move in moves:
        topic, partition = move["topic"], move["partition"]
        if move["member"] is not None:
            owned.get(move["member"], {}).get(topic, set()).discard(partition)
        if move["previous_member"] is not None:
            mine = owned.setdefault(move["previous_member"], {})
            mine.setdefault(topic, set()).add(partition)
    return owned
