"""Decisions drafted from candidates: what to store for each group of a snapshot.

Belongs here: combining one group's rows of the snapshot's tables into a decision. Belongs
elsewhere: analysing groups (`fairlead.domain.analysis`), storing the decision (`fairlead.store`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from assignors.assignment import Assignment
from assignors.problem import Problem
from fairlead.common.tables import named
from fairlead.domain.advice import with_advice
from fairlead.domain.analysis.capacities import Capacity
from fairlead.domain.analysis.forecast import Outlook
from fairlead.domain.analysis.sample_series import Float64, Int32
from fairlead.domain.candidate_figures import OBSERVED, candidate_of
from fairlead.domain.policy import Policy, policy_for
from fairlead.domain.prospect import Prospect
from fairlead.domain.records import Decision, Findings, MemberLoad, PlanDraft
from fairlead.wire.document import MemberShare

#: Reasons for moves, if the assignor gives none.
PLACED: Final = "had no owner"
MOVED: Final = "the assignor's rule gives it to another member"
#: Columns of samples that describe a group, its members and their subscriptions.
_DESCRIBED: Final = [
    *("group", "sample_id", "at", "error", "protocol", "group_type", "topics", "topic_ids"),
    *("members", "subscriptions"),
]
#: Columns of the table of candidates from which an `Outlook` is made.
_OUTLOOK: Final = ("arrival_rates", "backlog", "behind_s", "capacity_used")
#: Columns of the table of candidates that have an array in each row. They are read row by row.
_ARRAYS: Final = (
    *("topics", "partition_counts", "weights", "owner", "reasons"),
    *_OUTLOOK,
)


def decisions(
    samples: pa.Table,
    candidates: pa.Table,
    policies: Sequence[Policy],
    now: datetime,
) -> Iterator[Decision]:
    """Yield the decision on each group of a snapshot, ordered by the group's name.

    Parameters
    ----------
    samples
        The snapshot, of the schema `fairlead.domain.samples.SAMPLES`.
    candidates
        The candidates of the snapshot's groups: schema `fairlead.spark.planning.CANDIDATES`.
    policies
        The policies; for each group, the one with the most specific pattern decides.
    now
        Creation time of the plans. They expire when `expires_after` of the policy has passed.

    Yields
    ------
    A PlanDraft if the analysis decided on a plan, else a Decision with the reason. Its outcome is
    `failed` if the group could not be read or planned.
    """
    by_group: dict[str, dict[str, dict[str, Any]]] = {}
    for place, row in enumerate(candidates.drop_columns(list(_ARRAYS)).to_pylist()):
        by_group.setdefault(row["group"], {})[row["assignor"]] = row | {"place": place}
    for row in samples.sort_by("group").select(_DESCRIBED).to_pylist():
        group = row["group"]
        common = {"group": group, "snapshot_id": row["sample_id"], "snapshot_at": row["at"]}
        if row["error"]:
            yield Decision(**common, outcome="failed", reason=row["error"])
            continue
        try:
            decision = _decide(
                common,
                policy_for(group, policies),
                by_group.pop(group, {}),
                candidates,
                described=row,
                now=now,
            )
        except Exception as error:  # noqa: BLE001 - one group's data must not fail the others
            reason = f"no decision, because of an error: {error!r}"
            decision = Decision(**common, outcome="failed", reason=reason)
        yield decision


def _decide(
    common: Mapping[str, Any],
    policy: Policy,
    rows: Mapping[str, Mapping[str, Any]],
    table: pa.Table,
    *,
    described: Mapping[str, Any],
    now: datetime,
) -> Decision:
    candidates = {assignor: candidate_of(row) for assignor, row in rows.items()}
    observed = candidates.pop(OBSERVED, None)
    if observed is None:
        return Decision(**common, outcome="failed", reason="the group was not analysed")
    if observed.metrics is None:
        return Decision(
            **common, outcome="failed", reason=observed.error or "the present balance is unknown"
        )
    analysed = rows[OBSERVED]
    known = {**common, "observed": observed.metrics, "candidates": tuple(candidates.values())}
    if analysed["decision"] is None:
        return Decision(
            **known, reason=f"{observed.outcome or 'nothing'}: there is nothing to plan"
        )
    findings = Findings.of_columns(analysed)
    findings = replace(findings, evidence=with_advice(findings.evidence, described))
    known |= {"reason": analysed["decision_reason"], "findings": findings}
    if analysed["decision"] != "plan":
        return Decision(**known)
    subscriptions = dict(zip(described["members"], described["subscriptions"], strict=True))
    place, chosen = analysed["place"], rows[analysed["chosen"]]["place"]
    counts = dict(
        zip(
            table["topics"][place].as_py(),
            _numbers(table, "partition_counts", place).tolist(),
            strict=True,
        )
    )
    problem = Problem.of(counts, subscriptions)
    before, owner = (_numbers(table, "owner", row) for row in (place, chosen))
    weights = _numbers(table, "weights", place).astype(np.float64)
    outlook = _outlook(table, place)
    reasons = {each["index"]: each["reason"] for each in table["reasons"][chosen].as_py()}
    return PlanDraft(
        **known,
        assignor=analysed["chosen"],
        predicted=candidates[analysed["chosen"]].metrics or {},
        moves=_moves(problem, weights, before, owner, reasons),
        expires_at=None if policy.expires_after is None else now + policy.expires_after,
        partition_counts=counts,
        members={
            name: MemberShare(
                tuple(sorted(subscriptions[name])),
                {topic: np.array(numbers, np.int32) for topic, numbers in owned.items()},
            )
            for name, owned in Assignment(problem, owner).by_member().items()
        },
        weights=dict(zip(counts, np.split(weights, problem.topic_offsets[1:-1]), strict=True)),
        topic_ids={
            topic: text
            for topic, text in zip(described["topics"], described["topic_ids"], strict=True)
            if text is not None and topic in counts
        },
        four_eyes=policy.four_eyes,
        shadow=policy.shadow,
        prospect=Prospect(problem, outlook, policy.horizon.total_seconds()) if outlook else None,
        statuses=frozenset(analysed["statuses"] or ()),
        loads=_loads(problem, outlook, before, owner, findings.capacities) if outlook else {},
    )


def _numbers(table: pa.Table, name: str, row: int) -> npt.NDArray[Any]:
    """Return the list of numbers in one row of a column, empty if the row has none."""
    values = table[name][row].values
    return np.empty(0) if values is None else np.asarray(values.to_numpy(zero_copy_only=False))


def _outlook(table: pa.Table, row: int) -> Outlook | None:
    """Return the expected loads and capacities of an analysed group; None if they are unknown."""
    arrivals, backlog, behind_s, capacities = (
        _numbers(table, name, row).astype(np.float64) for name in _OUTLOOK
    )
    if arrivals.size < _numbers(table, "owner", row).size:
        return None
    return Outlook(arrivals, np.zeros_like(arrivals), backlog, behind_s, capacities)


def _moves(
    problem: Problem, weights: Float64, before: Int32, owner: Int32, reasons: Mapping[int, str]
) -> pa.Table:
    """Return the partitions whose owner changes, as the table `PlanDraft.moves`."""
    changed = np.flatnonzero(owner != before)
    topic_of = problem.topic_of[changed]
    why = [reasons.get(index, PLACED if before[index] < 0 else MOVED) for index in changed.tolist()]
    return pa.table(
        {
            "topic": named(topic_of, problem.topics),
            "partition": (changed - problem.topic_offsets[topic_of]).astype(np.int32),
            "previous_member": named(before[changed], problem.members),
            "member": named(owner[changed], problem.members),
            "weight": weights[changed],
            "reason": pa.array(why, pa.string()),
        }
    )


def _loads(
    problem: Problem, outlook: Outlook, before: Int32, owner: Int32, known: Mapping[str, Capacity]
) -> dict[str, MemberLoad]:
    """Return the load of each member before and after the plan."""
    now, then = (outlook.by_member(outlook.arrivals, owners).tolist() for owners in (before, owner))
    return {
        name: MemberLoad(
            before=now[index],
            after=then[index],
            capacity=float(outlook.capacities[index]),
            seen=known[name].records_per_s if name in known else None,
            measured=name in known and known[name].measured,
        )
        for index, name in enumerate(problem.members)
    }
