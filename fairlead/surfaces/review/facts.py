"""The facts about a version under review, read from the store and verified.

Belongs here: reading the facts, and computing the owners before the plan. Belongs elsewhere:
assessing the facts (`risks`), wording them (`page`).
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
from fairlead.store.history_queries import read_analysed, read_candidates, read_plan
from fairlead.store.lag_queries import read_statuses
from fairlead.store.plans import PlanStore
from fairlead.store.queries import Row
from fairlead.wire.document import PlanDocument


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """The facts about one version.

    Parameters
    ----------
    plan
        The version from `read_plan`, with its events and moves.
    stored
        The version with its bytes.
    document
        The parsed bytes; None if they are invalid or do not agree with the version's hash.
    broken
        Why `document` is None; None if the bytes are valid.
    predicted
        The plan's metrics, computed from the plan's snapshot.
    consumers
        Every consumer's load before and after the plan, the most loaded first; empty if `document`
        is None.
    analysed
        Arrival rates and capacities from the analysis that led to the plan; None: there was no
        analysis.
    candidates
        The candidate of every assignor, by ascending load of the most loaded member; empty for a
        rollback or a renewal.
    statuses
        For each status, a row with the number of partitions that had it in the plan's snapshot;
        empty if these rows were deleted.
    now
        When the facts were read; time-zone-aware.
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
        """Whether the version still waits for approval: it is proposed, and has not expired."""
        return self.stored.state == "proposed" and not self.expired

    @property
    def expired(self) -> bool:
        """Whether the plan has expired, even if the database does not have this state yet."""
        expires_at = self.stored.expires_at
        return expires_at is not None and expires_at <= self.now

    @property
    def loads(self) -> list[tuple[str, MemberLoad]]:
        """Every member and its arrival rates, by descending rate under the plan."""
        members = {} if self.analysed is None else self.analysed.members
        return sorted(members.items(), key=lambda item: (-item[1].after, item[0]))

    @property
    def times(self) -> list[tuple[str, str]]:
        """Partitions and texts about the time per record; the longest time comes first."""
        analysed = self.analysed
        return times_by_partition(analysed.reported, analysed.costs) if analysed else []

    @property
    def busy(self) -> Mapping[str, float | None]:
        """Maps each consumer to the share of time that it was busy; empty without reports."""
        return {} if self.analysed is None else self.analysed.reported.get("consumers", {})

    @property
    def partitions(self) -> int | None:
        """Number of partitions in the plan; None if `document` is None."""
        return None if self.document is None else sum(self.document.partition_counts.values())


def gather(engine: Engine, group: str, version: int | None, now: datetime) -> Facts:
    """Read the facts about a version.

    Parameters
    ----------
    version
        The version; None: the newest.

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
    """Return the owners in the plan's snapshot, by undoing the plan's moves.

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
            share = owned.setdefault(move["previous_member"], {})
            share.setdefault(topic, set()).add(partition)
    return owned
