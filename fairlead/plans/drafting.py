"""From candidates to decisions: what is to be stored for each group of a snapshot.

Belongs here: gathering one group's rows of the snapshot's tables into a `PlanDraft` or a `NoPlan`.
Does not: computing candidates (`fairlead.spark.candidates`), choosing between them (`choice`),
storing the decision (`fairlead.store`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.plans.choice import Candidate, choose, cool_down
from fairlead.plans.document import MemberShare
from fairlead.policy import Policy, policy_for
from fairlead.store.models import METRICS
from fairlead.store.records import NoPlan, PlanDraft
from fairlead.tables import slices

#: The candidates' row that measures what the group has now.
OBSERVED: Final = "observed"

_MOVE_COLUMNS: Final = ["topic", "partition", "previous_member", "member", "weight", "reason"]


@dataclass(frozen=True)
class SnapshotTables:
    """What is known of the groups of one snapshot.

    Parameters
    ----------
    snapshot_id, snapshot_at
        The snapshot; time-zone-aware.
    groups, members, candidates, candidate_partitions
        Tables with a column `group`, as `fairlead.kafka` and `fairlead.spark` write them.
    """

    snapshot_id: str
    snapshot_at: datetime
    groups: pa.Table
    members: pa.Table
    candidates: pa.Table
    candidate_partitions: pa.Table


def decisions(
    tables: SnapshotTables,
    policies: Sequence[Policy],
    now: datetime,
    changed_at: Mapping[str, datetime] | None = None,
) -> Iterator[PlanDraft | NoPlan]:
    """Decide on every group of a snapshot, in the order of their names.

    Parameters
    ----------
    tables
        The snapshot.
    policies
        From `fairlead.toml`; the most specific one decides for a group.
    now
        When the plans are made: what `expires_after` counts from.
    changed_at
        Group to when a plan of it was last published or retired: what `cooldown` counts from.

    Yields
    ------
    PlanDraft where the policy's candidate is worth it, else NoPlan with the reason. A group that
    could not be read or planned is a NoPlan with the outcome `failed`.
    """
    members = slices(tables.members, "group")
    candidates = slices(tables.candidates, "group")
    partitions = slices(tables.candidate_partitions, "group")
    for row in tables.groups.sort_by("group").select(["group", "error"]).to_pylist():
        group = row["group"]
        common = {
            "group": group,
            "snapshot_id": tables.snapshot_id,
            "snapshot_at": tables.snapshot_at,
        }
        if row["error"]:
            yield NoPlan(**common, outcome="failed", reason=row["error"])
            continue
        yield _decide(
            common,
            policy_for(group, policies),
            candidates.get(group, tables.candidates.slice(0, 0)).to_pylist(),
            members=members.get(group, tables.members.slice(0, 0)),
            partitions=partitions.get(group, tables.candidate_partitions.slice(0, 0)),
            now=now,
            changed_at=(changed_at or {}).get(group),
        )


def ownership(members: pa.Table) -> dict[str, dict[str, dict[str, list[int]]]]:
    """Return who owns what: group to member to topic to partitions, from the table of members."""
    owned: dict[str, dict[str, dict[str, list[int]]]] = {}
    for row in members.select(["group", "member", "partitions"]).to_pylist():
        mine = owned.setdefault(row["group"], {}).setdefault(row["member"], {})
        for partition in row["partitions"]:
            mine.setdefault(partition["topic"], []).append(partition["partition"])
    return owned


def _decide(
    common: Mapping[str, Any],
    policy: Policy,
    rows: list[dict[str, Any]],
    *,
    members: pa.Table,
    partitions: pa.Table,
    now: datetime,
    changed_at: datetime | None,
) -> PlanDraft | NoPlan:
    candidates = {row["assignor"]: _candidate(row) for row in rows}
    observed = candidates.pop(OBSERVED, None)
    offered = tuple(candidates.values())
    if observed is not None and observed.metrics is None:
        return NoPlan(**common, outcome="failed", reason=observed.error or "no observed balance")
    measured = observed.metrics if observed else None
    choice = choose(policy, offered, measured or {})
    choice = cool_down(choice, policy, changed_at=changed_at, now=now)
    known = {**common, "observed": measured, "candidates": offered, "reason": choice.reason}
    if choice.outcome != "plan" or choice.candidate is None:
        return NoPlan(**known, outcome=choice.outcome)
    chosen = partitions.filter(pc.equal(partitions["assignor"], choice.candidate.assignor))
    chosen = chosen.sort_by([("topic", "ascending"), ("partition", "ascending")]).combine_chunks()
    weights = _by_topic(chosen["topic"], chosen["weight"].to_numpy().astype(np.float64))
    return PlanDraft(
        **known,
        assignor=choice.candidate.assignor,
        predicted=choice.candidate.metrics or {},
        moves=_moves(chosen),
        expires_at=None if policy.expires_after is None else now + policy.expires_after,
        partition_counts={topic: values.size for topic, values in weights.items()},
        members=_shares(members, chosen),
        weights=weights,
        four_eyes=policy.four_eyes,
    )


def _candidate(row: Mapping[str, Any]) -> Candidate:
    return Candidate(
        assignor=row["assignor"],
        metrics=None if row["error"] else {name: row[name] for name in METRICS},
        outcome=row["outcome"],
        error=row["error"],
    )


def _moves(chosen: pa.Table) -> pa.Table:
    """Return the rows whose owner changes."""
    before, after = (pc.fill_null(chosen[name], "") for name in ("previous_member", "member"))
    return chosen.filter(pc.not_equal(before, after)).select(_MOVE_COLUMNS)


def _shares(members: pa.Table, chosen: pa.Table) -> dict[str, MemberShare]:
    """Return every member's share; one that gets nothing has an empty one."""
    owned = slices(chosen.filter(pc.is_valid(chosen["member"])), "member")
    nothing = chosen.slice(0, 0)
    shares = {}
    for row in members.select(["member", "topics"]).to_pylist():
        share = owned.get(row["member"], nothing)
        shares[row["member"]] = MemberShare(
            topics=tuple(sorted(row["topics"])),
            partitions=_by_topic(share["topic"], share["partition"].to_numpy().astype(np.int32)),
        )
    return shares


def _by_topic(topics: pa.ChunkedArray, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Cut values into one array a topic; equal topics stand together."""
    if not values.size:
        return {}
    names = topics.to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(names[1:] != names[:-1]) + 1))
    return dict(zip(names[starts].tolist(), np.split(values, starts[1:]), strict=True))
