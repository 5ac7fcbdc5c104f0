"""Decisions and plans: as drafts before they are stored, and as stored.

Belongs here: drafts of decisions, and stored plans with integrity checks. Belongs elsewhere: SQL
(`fairlead.store`), and the document's format (`fairlead.wire.document`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, Literal
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
    """Findings of the analysis of a group.

    Parameters
    ----------
    diagnosis, names, evidence
        As in `fairlead.domain.analysis.diagnosis.Diagnosis`.
    forecast_time_lag_s, utilisation, loss_s, catch_up_s
        The forecast with the present owners. `loss_s`: None if retention deletes no unread record.
        `catch_up_s`: None if the group will never be within its objective.
    consumers_wanted, consumers_why
        Number of consumers that are enough, and the reason. None: unknown, or more would not help.
    costs
        Known costs of records, as returned by `Costs.intervals`.
    remembered_costs
        Costs to be remembered for the next analysis, as returned by `Costs.rows`.
    reported
        Reported work as JSON, as returned by `MeasuredWork.row`; empty if there is none.
    capacities
        Maps each member to its capacity, to be remembered for the next analysis.
    seen
        The analysed sample, to be stored as the group's newest one; None in planning runs.
    kept
        The analysed sample, if it must also be stored in the group's history (see
        `StoredSample.is_news`); else None.
    """

    diagnosis: str
    names: tuple[str, ...]
    evidence: str
    forecast_time_lag_s: float
    utilisation: float
    capacities: Mapping[str, Capacity]
    loss_s: float | None = None
    catch_up_s: float | None = None
    consumers_wanted: int | None = None
    consumers_why: str = ""
    costs: CostRows = field(default_factory=dict)
    remembered_costs: CostRows = field(default_factory=dict)
    reported: Mapping[str, Any] = field(default_factory=dict)
    seen: StoredSample | None = None
    kept: StoredSample | None = None

    def columns(self) -> dict[str, Any]:
        """Return the findings as columns of the table of candidates."""
        values = {name: getattr(self, name) for name in _COLUMNS}
        return values | {
            "names": list(self.names),
            "capacities": capacity_rows(self.capacities),
            **{name: json.dumps(values[name]) for name in _JSON},
        }

    @classmethod
    def of_columns(cls, row: Mapping[str, Any]) -> "Findings":
        """Return the findings in a row of the table of candidates."""
        values = {name: row[name] for name in _COLUMNS}
        return cls(
            **values
            | {"names": tuple(row["names"]), "capacities": capacities_of(row["capacities"])}
            | {name: json.loads(row[name]) for name in _JSON}
        )


_COLUMNS: Final = [each.name for each in fields(Findings) if each.name not in {"seen", "kept"}]
_JSON: Final = ("costs", "remembered_costs", "reported")


def capacity_rows(capacities: Mapping[str, Capacity]) -> list[dict[str, Any]]:
    """Return members' capacities as rows, one per member."""
    return [{"member": name} | vars(capacity) for name, capacity in capacities.items()]


def capacities_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Capacity]:
    """Return the capacities by member; the inverse of `capacity_rows`."""
    return {
        row["member"]: Capacity(row["records_per_s"], row["measured"], row["at"]) for row in rows
    }


@dataclass(frozen=True, kw_only=True)
class MemberLoad:
    """Load and capacity of one member in an analysis, in cost-weighted records a second.

    Pages show only ratios of these values, because readers do not know this unit.

    Parameters
    ----------
    before, after
        Arrivals in the member's present partitions, and in its planned partitions.
    capacity
        The capacity on which the forecast is based; 0 if no member's capacity is known.
    seen
        The capacity, or a lower bound of it, that samples show; None: unknown.
    measured
        Whether `seen` was measured while the member was at its limit. If not, `capacity` is an
        assumption.
    """

    before: float
    after: float
    capacity: float
    seen: float | None = None
    measured: bool = False

    @property
    def used_before(self) -> float | None:
        """Utilisation of the member with its present partitions; None if its capacity is 0."""
        return self.before / self.capacity if self.capacity else None

    @property
    def used_after(self) -> float | None:
        """Utilisation of the member with its planned partitions; None if its capacity is 0."""
        return self.after / self.capacity if self.capacity else None


@dataclass(frozen=True, kw_only=True)
class Analysed:
    """Values on which the decision for a plan was based. They are stored with the plan.

    Parameters
    ----------
    members
        Maps each member to its load.
    costs, reported
        As in `Findings`.
    statuses
        Statuses of the group's partitions in the snapshot.
    """

    members: Mapping[str, MemberLoad]
    costs: Mapping[str, Mapping[str, Sequence[float]]]
    statuses: frozenset[str]
    reported: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """The decision for a group in a snapshot. If a plan is proposed, it is a `PlanDraft`.

    Parameters
    ----------
    group, snapshot_id, snapshot_at
        The group and its snapshot; `snapshot_at` is time-zone-aware.
    outcome, reason
        The outcome (`plan`, `no change` or `failed`), and a sentence that explains it.
    observed
        Metrics of the present assignment; None if this assignment is not known.
    candidates
        The result of each assignor in the group's policy.
    findings
        The findings of the analysis; None if the group was not analysed.
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
class PlanDraft(Decision):
    """The decision to propose a plan, with everything in the plan except its version.

    Parameters
    ----------
    assignor
        The assignor whose candidate was chosen.
    predicted
        Metrics of the plan's assignment, computed from the snapshot.
    moves
        Partitions whose owner changes, a row each: topic string, partition int32,
        previous_member string, member string, weight double, reason string. The last two columns
        may be absent.
    expires_at
        Time until which the plan can be approved and published; None: no limit.
    partition_counts, members, weights, topic_ids
        As in `PlanDocument`.
    four_eyes
        `database` or `proxy`: who checks that proposer and approver differ; None: no check.
    shadow
        Whether the group is in shadow mode: the plan cannot be approved.
    rolled_back_from
        For rollbacks, the earlier version that this plan returns to; else None.
    request_id
        The request on a page that led to this plan, if any.
    prospect
        Input for forecasts of this and other plans; None if the group was not analysed.
    statuses
        Statuses of the group's partitions in the snapshot.
    loads
        Maps each member to its load; empty if the group was not analysed.
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
    shadow: bool = False
    rolled_back_from: int | None = None
    request_id: UUID | None = None
    prospect: Prospect | None = None
    statuses: frozenset[str] = frozenset()
    loads: Mapping[str, MemberLoad] = field(default_factory=dict)

    @property
    def analysed(self) -> Analysed | None:
        """Values on which the decision was based; None if the group was not analysed."""
        if not self.loads or self.findings is None:
            return None
        findings = self.findings
        return Analysed(
            members=self.loads,
            costs=findings.costs,
            reported=findings.reported,
            statuses=self.statuses,
        )

    def document(self, version: int, plan_id: UUID, created_at: datetime) -> PlanDocument:
        """Return the plan document, given the plan's version, id and creation time."""
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
    """One version of a group's plan, as it is stored.

    Parameters
    ----------
    reason
        Why the plan was made, and why this candidate was chosen.
    document
        The exact bytes that are published.
    sha256, approved_sha256
        The hash of `document` that was stored with it, and the hash that was approved; None: not
        approved.
    topic, partition, record_offset
        Position of the plan's record; None if it is not published.
    four_eyes, shadow, rolled_back_from
        As in `PlanDraft`.
    lease_until
        Time at which consumers stop following the plan unless the lease is renewed; None: consumers
        do not follow the plan.
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
    shadow: bool = False

    @property
    def was_followed(self) -> bool:
        """Whether consumers followed this plan earlier, so that a rollback can return to it."""
        return self.state in {"superseded", "withdrawn"}

    def expired(self, now: datetime) -> bool:
        """Return whether `now` (time-zone-aware) is too late to approve or publish the plan."""
        return self.expires_at is not None and now >= self.expires_at

    def verify(self) -> PlanDocument:
        """Return the document, after checking its hashes and its version.

        Raises
        ------
        TamperedPlanError
            The hash of the document differs from the stored or from the approved hash, or the
            document belongs to another plan.
        InvalidPlanError
            The document is not valid.
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
                f"{name}: the stored document is another plan's: version {document.version}, plan "
                f"{document.plan_id}"
            )
        return document


@dataclass(frozen=True, kw_only=True)
class StoredDecision:
    """A decision for a group, as it is stored.

    Parameters
    ----------
    plan
        The proposed plan; None unless the outcome is `plan`.
    created
        Whether the decision was stored now; False: the snapshot already had a decision for the
        group.
    """

    group: str
    snapshot_id: str
    outcome: Outcome
    reason: str
    plan: StoredPlan | None
    created: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class SeenAdoption:
    """To what extent the consumers of a group follow its published plan.

    Parameters
    ----------
    group, version
        The group, and the version of its plan.
    observed_at
        Time at which the owners were read.
    planned, as_planned
        Number of partitions to which the plan gives an owner, and number of these that have this
        owner.
    """

    group: str
    version: int
    observed_at: datetime
    planned: int
    as_planned: int

    @property
    def adherence(self) -> float | None:
        """Share of the plan's partitions that are owned by the planned member."""
        return adherence(self.as_planned, self.planned)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredLag:
    """Lag and statuses of a group's partitions in a snapshot.

    Parameters
    ----------
    lags
        Maps each topic to the lags of its partitions, in records.
    statuses
        The different statuses of the partitions.
    """

    lags: Mapping[str, npt.NDArray[np.float64]]
    statuses: frozenset[str]
