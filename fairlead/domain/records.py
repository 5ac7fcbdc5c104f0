"""What goes into the store and what comes out of it, as frozen records.

Belongs here: drafts of decisions, and plans as stored, which can check their own integrity. Does
not: any SQL (`fairlead.store`), nor the document's format (`fairlead.wire.document`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.costs import CostRows
from fairlead.domain.candidate_figures import Outcome, SnapshotCandidate
from fairlead.domain.figures import adherence
from fairlead.domain.identity import FourEyes
from fairlead.domain.prospect import Prospect
from fairlead.domain.stored_samples import StoredSample
from fairlead.errors import TamperedPlanError
from fairlead.wire.document import MemberShare, PlanDocument, content_hash


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What an analysis says of a group as it is.

    Parameters
    ----------
    diagnosis, names, evidence
        As in `fairlead.domain.analysis.diagnosis.Diagnosis`.
    late_s, utilisation, loss_s, caught_up_s
        The forecast of what is; `loss_s` None where retention takes nothing, `caught_up_s` where
        the group will never be within its objective.
    consumers_wanted, consumers_why
        How many consumers would do, None where that is not known or more do not help, and why.
    costs
        What a record of a partition takes, where that is known: topic to partition to low, value
        and high.
    remembered_costs
        Costs for the next analysis, by `Costs.rows`.
    reported
        Reported work as JSON, by `MeasuredWork.row`; empty if there is none.
    capacities
        Member to what is known of its speed now; replaces what was known before.
    seen
        What the look saw, which replaces what the look before saw; None: a planning run analysed.
    kept
        What is kept of the look; None: it is like the one that is kept already.
    """

    diagnosis: str
    names: tuple[str, ...]
    evidence: str
    late_s: float
    utilisation: float
    capacities: Mapping[str, Capacity]
    loss_s: float | None = None
    caught_up_s: float | None = None
    consumers_wanted: int | None = None
    consumers_why: str = ""
    costs: CostRows = field(default_factory=dict)
    remembered_costs: CostRows = field(default_factory=dict)
    reported: Mapping[str, Any] = field(default_factory=dict)
    seen: StoredSample | None = None
    kept: StoredSample | None = None


@dataclass(frozen=True, kw_only=True)
class MemberLoad:
    """What an analysis counts on for one member, in records of the group's usual kind a second.

    People read shares of these values, and no values in this unit.

    Parameters
    ----------
    before, after
        What arrives at its partitions: those it has, and those that the plan gives it.
    capacity
        What it can do, as the forecast counts; 0 where nothing is known of anybody.
    seen
        What was seen of it; None: nothing.
    measured
        Whether it was at its limit then; else `capacity` is expected of it.
    """

    before: float
    after: float
    capacity: float
    seen: float | None = None
    measured: bool = False

    @property
    def used_before(self) -> float | None:
        """What arrives at what it has, as a share of what it can do."""
        return self.before / self.capacity if self.capacity else None

    @property
    def used_after(self) -> float | None:
        """The same, under the plan."""
        return self.after / self.capacity if self.capacity else None


@dataclass(frozen=True, kw_only=True)
class Analysed:
    """What the analysis behind a plan counted with; stored with the plan.

    Parameters
    ----------
    members
        Every member's load.
    costs, reported
        As in `Findings`.
    statuses
        Those that the group's partitions have in the snapshot, as approval asks for them.
    """

    members: Mapping[str, MemberLoad]
    costs: Mapping[str, Mapping[str, Sequence[float]]]
    statuses: frozenset[str]
    reported: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoPlan:
    """A look at a group that proposes nothing.

    Parameters
    ----------
    group, snapshot_id, snapshot_at
        The group, and the snapshot that was looked at; time-zone-aware.
    outcome, reason
        What it came to, and why, in words.
    observed
        Metrics of the group's assignment in the snapshot; None where there is none.
    candidates
        What the assignors of the policy would have done.
    findings
        What the analysis says; None where there was none, as of a group that cannot be read.
    """

    group: str
    snapshot_id: str
    snapshot_at: datetime
    reason: str
    outcome: Outcome = "no change"
    observed: Mapping[str, Any] | None = None
    candidates: tuple[SnapshotCandidate, ...] = ()
    findings: Findings | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PlanDraft(NoPlan):
    """A look at a group that proposes a plan: everything but its version.

    Parameters
    ----------
    assignor
        The one whose candidate was chosen.
    predicted
        Metrics of the plan's assignment, on the snapshot.
    moves
        The partitions whose owner changes, one row each: topic string, partition int32,
        previous_member string, member string, weight double, reason string. The last two columns
        may be absent.
    expires_at
        Until when the plan can be approved and published; None: no end.
    partition_counts, members, weights, topic_ids
        As in `PlanDocument`.
    four_eyes
        Who sees that another person approves than proposed; None: nobody has to.
    observed_only
        Whether the policy observes: nobody can approve it.
    rolled_back_from
        The version whose assignment this is again; None: it is a new one.
    request_id
        What a person asked for on a page, where that is why.
    prospect
        What holds this plan against another one; None where nothing was analysed.
    statuses
        Those that the group's partitions have in the snapshot, as approval asks for them.
    loads
        What the analysis counts on for each member; empty where nothing was analysed.
    """

    outcome: Literal["plan"] = field(default="plan", init=False)
    assignor: str
    predicted: Mapping[str, Any]
    moves: pa.Table
    expires_at: datetime | None
    partition_counts: Mapping[str, int]
    members: Mapping[str, MemberShare]
    weights: Mapping[str, npt.NDArray[np.float64]]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    four_eyes: FourEyes | None = None
    observed_only: bool = False
    rolled_back_from: int | None = None
    request_id: UUID | None = None
    prospect: Prospect | None = None
    statuses: frozenset[str] = frozenset()
    loads: Mapping[str, MemberLoad] = field(default_factory=dict)

    @property
    def analysed(self) -> Analysed | None:
        """What the analysis counted with; None where nothing was analysed."""
        if not self.loads or self.findings is None:
            return None
        found = self.findings
        return Analysed(
            members=self.loads, costs=found.costs, reported=found.reported, statuses=self.statuses
        )

    def document(self, version: int, plan_id: UUID, created_at: datetime) -> PlanDocument:
        """Return the document of this draft as a version."""
        return PlanDocument(
            group=self.group,
            version=version,
            plan_id=str(plan_id),
            assignor=self.assignor,
            created_at=created_at,
            snapshot_at=self.snapshot_at,
            partition_counts=self.partition_counts,
            members=self.members,
            weights=self.weights,
            topic_ids=self.topic_ids,
        )


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """One version of a group's plan, as the database holds it.

    Parameters
    ----------
    reason
        Why a plan was made, and why from this candidate.
    document
        The exact bytes that are published.
    sha256, approved_sha256
        The stored hash of `document`, and the hash that the approval names; None: not approved.
    topic, partition, record_offset
        Where it was published; None: it was not.
    four_eyes, observed_only, rolled_back_from
        As in `PlanDraft`.
    lease_until
        When consumers leave it unless they are told of it again; None: they are not to follow it.
    """

    group: str
    version: int
    plan_id: UUID
    state: str
    assignor: str
    reason: str
    snapshot_id: str
    snapshot_at: datetime
    created_at: datetime
    expires_at: datetime | None
    document: bytes = field(repr=False)
    sha256: str
    approved_sha256: str | None
    topic: str | None
    partition: int | None
    record_offset: int | None
    four_eyes: FourEyes | None
    rolled_back_from: int | None
    lease_until: datetime | None = None
    observed_only: bool = False

    @property
    def was_followed(self) -> bool:
        """Whether consumers followed it and do not now: what a rollback can go back to."""
        return self.state in {"superseded", "retired"}

    def expired(self, now: datetime) -> bool:
        """Whether it is too late to approve or publish the plan at `now` (time-zone-aware)."""
        return self.expires_at is not None and now >= self.expires_at

    def verify(self) -> PlanDocument:
        """Check the bytes against the hashes, and that they are this version's; return them read.

        Raises
        ------
        TamperedPlanError
            The document, its stored hash and the hash approved are not one and the same, or the
            document is that of another plan.
        InvalidPlanError
            The document breaks an invariant of its format.
        """
        name = f"group {self.group}: version {self.version}"
        actual = content_hash(self.document)
        if actual != self.sha256:
            raise TamperedPlanError(f"{name}: the document's hash is {actual}, not {self.sha256}")
        if self.approved_sha256 not in {None, actual}:
            raise TamperedPlanError(
                f"{name}: the hash {self.approved_sha256} was approved, not {actual}"
            )
        document = PlanDocument.from_bytes(self.document, group=self.group)
        if (document.version, document.plan_id) != (self.version, str(self.plan_id)):
            raise TamperedPlanError(
                f"{name}: the document is version {document.version}, plan {document.plan_id}"
            )
        return document


@dataclass(frozen=True, kw_only=True)
class StoredDecision:
    """What a look at a group came to, as the database holds it.

    Parameters
    ----------
    plan
        The plan proposed; None where the outcome is not `plan`.
    created
        Whether this call stored it; False: the snapshot had been decided on before.
    """

    group: str
    snapshot_id: str
    outcome: Outcome
    reason: str
    plan: StoredPlan | None
    created: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenAdoption:
    """How much of a published plan its consumers follow.

    Parameters
    ----------
    group, version
        The plan.
    observed_at
        When the live assignment was read.
    planned, as_planned
        Partitions that the plan gives an owner, and those of them that this owner has.
    """

    group: str
    version: int
    observed_at: datetime
    planned: int
    as_planned: int

    @property
    def adherence(self) -> float | None:
        """The share of planned partitions that are as planned."""
        return adherence(self.as_planned, self.planned)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredLag:
    """What a snapshot says of a group's partitions.

    Parameters
    ----------
    snapshot_at
        When it was taken.
    lags
        Topic to lag in records, one a measured partition, in the order of their numbers.
    statuses
        Those that partitions have.
    """

    snapshot_at: datetime
    lags: Mapping[str, npt.NDArray[np.float64]]
    statuses: frozenset[str]
