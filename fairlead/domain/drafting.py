"""From candidates to decisions: what is to be stored for each group of a snapshot.

Belongs here: gathering one group's rows of the snapshot's tables into a `PlanDraft` or a `NoPlan`.
Does not: analysing groups (`fairlead.domain.analysis`), storing the decision (`fairlead.store`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead.common.tables import named
from fairlead.domain.advice import with_advice
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.candidate_figures import FORECAST, METRICS, OBSERVED, RACKS, candidate_of
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.prospect import Prospect
from fairlead.domain.records import Findings, MemberLoad, NoPlan, PlanDraft
from fairlead.domain.samples import flat, list_starts
from fairlead.domain.samples.questions import capacities_of
from fairlead.wire.document import MemberShare

#: Why partitions change hands whose assignor gives no reason of its own.
PLACED: Final = "had no owner"
MOVED: Final = "the assignor's rule gives it to another member"
#: Columns of samples that say which members read which topics.
_DESCRIBED: Final = [
    *("group", "sample_id", "at", "error", "protocol", "group_type", "topics", "topic_ids"),
    *("members", "subscriptions"),
]
#: Of the table of candidates: what is said of each, without the arrays of its assignment.
_SUMMARY: Final = [
    *("assignor", "error", "outcome", *METRICS, *FORECAST, *RACKS, "frontier"),
    *("decision", "decision_reason", "chosen", "diagnosis", "names", "evidence", "loss_s"),
    *("consumers_wanted", "consumers_why", "costs", "remembered_costs", "reported"),
    *("capacities", "statuses"),
]
#: The lists of numbers in the table of candidates.
_NUMBERS: Final = (
    *("partition_counts", "weights", "owner"),
    *("arrival_rates", "backlog", "behind_s", "capacity_used"),
)


def decisions(
    samples: pa.Table,
    candidates: pa.Table,
    policies: Sequence[Policy],
    now: datetime,
) -> Iterator[PlanDraft | NoPlan]:
    """Decide on every group of a snapshot, in the order of their names.

    Parameters
    ----------
    samples
        The snapshot, of the schema `fairlead.domain.samples.SAMPLES`.
    candidates
        The candidates of its groups, of the schema `fairlead.spark.planning.CANDIDATES`.
    policies
        From `fairlead.toml`; the most specific one decides for a group.
    now
        When the plans are made: what `expires_after` counts from.

    Yields
    ------
    PlanDraft where the analysis says so, else NoPlan with the reason. A group that
    could not be read or planned is a NoPlan with the outcome `failed`.
    """
    assignments = _Assignments(candidates)
    by_group: dict[str, dict[str, dict[str, Any]]] = {}
    for place, row in enumerate(candidates.select(["group", *_SUMMARY]).to_pylist()):
        by_group.setdefault(row["group"], {})[row["assignor"]] = row | {"place": place}
    for row in samples.sort_by("group").select(_DESCRIBED).to_pylist():
        group = row["group"]
        common = {"group": group, "snapshot_id": row["sample_id"], "snapshot_at": row["at"]}
        if row["error"]:
            yield NoPlan(**common, outcome="failed", reason=row["error"])
            continue
        decision: PlanDraft | NoPlan
        try:
            decision = _decide(
                common,
                policy_for(group, policies),
                by_group.pop(group, {}),
                assignments,
                subscriptions=dict(zip(row["members"], row["subscriptions"], strict=True)),
                described=row,
                now=now,
            )
        except Exception as error:  # noqa: BLE001 - one group's data must not fail the others
            why = f"the group cannot be decided on: {error!r}"
            decision = NoPlan(**common, outcome="failed", reason=why)
        yield decision


def _decide(
    common: Mapping[str, Any],
    policy: Policy,
    rows: Mapping[str, Mapping[str, Any]],
    assignments: "_Assignments",
    *,
    subscriptions: Mapping[str, Sequence[str]],
    described: Mapping[str, Any],
    now: datetime,
) -> PlanDraft | NoPlan:
    candidates = {assignor: candidate_of(row) for assignor, row in rows.items()}
    observed = candidates.pop(OBSERVED, None)
    if observed is None:
        return NoPlan(**common, outcome="failed", reason="the group was not analysed")
    if observed.metrics is None:
        return NoPlan(**common, outcome="failed", reason=observed.error or "no observed balance")
    analysed = rows[OBSERVED]
    known = {**common, "observed": observed.metrics, "candidates": tuple(candidates.values())}
    if analysed["decision"] is None:
        return NoPlan(**known, reason=f"{observed.outcome or 'nothing'}: there is nothing to plan")
    known |= {"reason": analysed["decision_reason"], "findings": _findings(analysed, described)}
    if analysed["decision"] != "plan":
        return NoPlan(**known)
    place, chosen = analysed["place"], rows[analysed["chosen"]]["place"]
    layout, owner = _Layout.of(assignments, place), assignments.numbers("owner", chosen)
    prospect = layout.prospect(assignments, place, policy.horizon.total_seconds())
    reasons = {reason["index"]: reason["reason"] for reason in assignments.of("reasons", chosen)}
    return PlanDraft(
        **known,
        assignor=analysed["chosen"],
        predicted=candidates[analysed["chosen"]].metrics or {},
        moves=layout.moves(owner, reasons),
        expires_at=None if policy.expires_after is None else now + policy.expires_after,
        partition_counts=dict(zip(layout.topics, layout.counts.tolist(), strict=True)),
        members=layout.shares(owner, subscriptions),
        weights=dict(zip(layout.topics, layout.cut(layout.weights), strict=True)),
        topic_ids={
            topic: text
            for topic, text in zip(described["topics"], described["topic_ids"], strict=True)
            if text is not None and topic in layout.topics
        },
        four_eyes=policy.four_eyes,
        observed_only=policy.observe,
        prospect=prospect,
        statuses=frozenset(analysed["statuses"] or ()),
        loads={} if prospect is None else layout.loads(prospect, owner, analysed["capacities"]),
    )


def _findings(analysed: Mapping[str, Any], described: Mapping[str, Any]) -> Findings:
    return Findings(
        diagnosis=analysed["diagnosis"],
        names=tuple(analysed["names"]),
        evidence=with_advice(analysed["evidence"], described),
        late_s=analysed["late_s"],
        utilisation=analysed["utilisation"],
        loss_s=analysed["loss_s"],
        caught_up_s=analysed["caught_up_s"],
        consumers_wanted=analysed["consumers_wanted"],
        consumers_why=analysed["consumers_why"],
        costs=json.loads(analysed["costs"]),
        remembered_costs=json.loads(analysed["remembered_costs"]),
        reported=json.loads(analysed["reported"]),
        capacities=capacities_of(analysed["capacities"]),
    )


class _Assignments:
    """The lists in a table of candidates, by row.

    Parameters
    ----------
    candidates
        The table.
    """

    def __init__(self, candidates: pa.Table) -> None:
        self._candidates = candidates
        self._flat = {name: flat(candidates[name]) for name in _NUMBERS}
        self._starts = {name: list_starts(candidates[name]) for name in _NUMBERS}

    def of(self, name: str, row: int) -> Any:
        """Return a list as Python has it; None: there is none."""
        return self._candidates[name][row].as_py()

    def numbers(self, name: str, row: int) -> npt.NDArray[Any]:
        """Return a list of numbers without making Python objects of them."""
        values: npt.NDArray[Any] = self._flat[name][slice(*self._starts[name][row : row + 2])]
        return values


@dataclass(frozen=True, eq=False)
class _Layout:
    """How the arrays of a group's candidates are laid out: P partitions, T topics, M members.

    Parameters
    ----------
    topics, members
        T and M names.
    counts, starts
        Partitions of each topic, and where they start in the arrays; int64 of shape (T,).
    weights
        float64 of shape (P,).
    owner
        As observed: int32 of shape (P,), -1 for nobody.
    """

    topics: list[str]
    members: list[str]
    counts: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    owner: npt.NDArray[np.int32]

    @classmethod
    def of(cls, assignments: _Assignments, row: int) -> "_Layout":
        """Read the row `observed` of a group."""
        counts = assignments.numbers("partition_counts", row)
        return cls(
            topics=assignments.of("topics", row),
            members=assignments.of("members", row),
            counts=counts,
            starts=np.cumsum(counts) - counts,
            weights=assignments.numbers("weights", row).astype(np.float64),
            owner=assignments.numbers("owner", row),
        )

    def cut(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Cut values of shape (P,) into one array a topic."""
        return np.split(values, self.starts[1:])

    def moves(self, owner: npt.NDArray[np.int32], reasons: Mapping[int, str]) -> pa.Table:
        """Return the partitions whose owner is another one now, as `PlanDraft.moves`."""
        changed = np.flatnonzero(owner != self.owner)
        before, after = self.owner[changed], owner[changed]
        topic_of = self._topic_of(changed)
        why = [
            reasons.get(index, PLACED if member < 0 else MOVED)
            for index, member in zip(changed.tolist(), before.tolist(), strict=True)
        ]
        return pa.table(
            {
                "topic": named(topic_of, self.topics),
                "partition": pa.array((changed - self.starts[topic_of]).astype(np.int32)),
                "previous_member": named(before, self.members),
                "member": named(after, self.members),
                "weight": pa.array(self.weights[changed]),
                "reason": pa.array(why, pa.string()),
            }
        )

    def shares(
        self, owner: npt.NDArray[np.int32], subscriptions: Mapping[str, Sequence[str]]
    ) -> dict[str, MemberShare]:
        """Return every member's share; one that gets nothing has an empty one."""
        places = np.argsort(owner, kind="stable")
        places = places[np.count_nonzero(owner < 0) :]
        topic_of = self._topic_of(places)
        numbers = (places - self.starts[topic_of]).astype(np.int32)
        share_of = owner[places] * np.int64(len(self.topics)) + topic_of
        firsts = np.flatnonzero(np.diff(share_of, prepend=-1))
        ends = [*firsts[1:].tolist(), places.size]
        owned: dict[str, dict[str, npt.NDArray[np.int32]]] = {name: {} for name in self.members}
        for share, first, end in zip(
            share_of[firsts].tolist(), firsts.tolist(), ends, strict=False
        ):
            member, topic = divmod(share, len(self.topics))
            owned[self.members[member]][self.topics[topic]] = numbers[first:end]
        return {
            name: MemberShare(tuple(sorted(topics)), owned[name])
            for name, topics in subscriptions.items()
        }

    def prospect(self, assignments: _Assignments, row: int, horizon_s: float) -> Prospect | None:
        """Return what the analysis expects of the group; None: it does not say."""
        arrivals, backlog, behind_s = (
            assignments.numbers(name, row).astype(np.float64)
            for name in ("arrival_rates", "backlog", "behind_s")
        )
        if arrivals.size < self.owner.size:
            return None
        outlook = Outlook(
            arrivals=arrivals,
            deviation=np.zeros_like(arrivals),
            backlog=backlog,
            late_s=behind_s,
            capacities=assignments.numbers("capacity_used", row).astype(np.float64),
        )
        counts = dict(zip(self.topics, self.counts.tolist(), strict=True))
        return Prospect(counts, self.members, outlook, horizon_s)

    def loads(
        self,
        prospect: Prospect,
        owner: npt.NDArray[np.int32],
        known: Iterable[Mapping[str, Any]],
    ) -> dict[str, MemberLoad]:
        """Return what the analysis counts on for each member, before and under new owners."""
        outlook, seen = prospect.outlook, {capacity["member"]: capacity for capacity in known}
        before, after = (
            outlook.by_member(outlook.arrivals, owner_of) for owner_of in (self.owner, owner)
        )
        return {
            name: MemberLoad(
                before=float(before[index]),
                after=float(after[index]),
                capacity=float(outlook.capacities[index]),
                seen=seen[name]["records_per_s"] if name in seen else None,
                measured=name in seen and seen[name]["measured"],
            )
            for index, name in enumerate(self.members)
        }

    def _topic_of(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        # The last of the topics that start there: the others have no partitions.
        return np.searchsorted(self.starts, places, side="right") - 1
