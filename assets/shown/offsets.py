"""What `group_offsets` shows: the snapshot, and which groups it could not read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.presentation import others, table


@dataclass(frozen=True, eq=False)
class SnapshotFacts:
    """What a snapshot has to show.

    Parameters
    ----------
    snapshot_id, snapshot_at
        The snapshot; time-zone-aware.
    groups, members, partitions
        Tables with a column `group`.
    spread_s
        Seconds from the first offset to the last; None: it is not known.
    """

    snapshot_id: str
    snapshot_at: datetime
    groups: pa.Table
    members: pa.Table
    partitions: pa.Table
    spread_s: float | None = None


def describe(snapshot: SnapshotFacts, groups: Sequence[str]) -> dict[str, Any]:
    """Show what a snapshot has of some groups, those that cannot be planned first."""
    wanted = pa.array(groups, pa.string())

    def of_groups(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.is_in(rows["group"], wanted))

    members, partitions = of_groups(snapshot.members), of_groups(snapshot.partitions)
    member_counts, partition_counts = _counts(members), _counts(partitions)
    rows = [
        {
            "group": row["group"],
            "state": row["state"],
            "members": member_counts.get(row["group"], 0),
            "partitions": partition_counts.get(row["group"], 0),
            "assignor in use": row["protocol"],
            "why it cannot be planned": row["error"],
        }
        for row in of_groups(snapshot.groups).to_pylist()
    ]
    rows.sort(key=lambda row: (row["why it cannot be planned"] is None, row["group"]))
    return {
        "snapshot": snapshot.snapshot_id,
        "taken at": dg.MetadataValue.timestamp(snapshot.snapshot_at),
        **({} if snapshot.spread_s is None else {"spread (s)": round(snapshot.spread_s, 3)}),
        "groups": len(rows),
        "groups that cannot be planned": sum(
            row["why it cannot be planned"] is not None for row in rows
        ),
        "members": members.num_rows,
        "partitions": partitions.num_rows,
        "by group": table(rows),
        **others(len(rows)),
    }


def _counts(rows: pa.Table) -> dict[str, int]:
    counted = rows.group_by("group").aggregate([([], "count_all")]).to_pylist()
    return {row["group"]: row["count_all"] for row in counted}
