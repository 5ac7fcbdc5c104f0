"""What `group_offsets` shows: the snapshot, and which groups it could not read."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.presentation import others, table
from fairlead.domain.snapshot import GroupSnapshot


def describe(snapshot: GroupSnapshot, groups: Sequence[str]) -> dict[str, Any]:
    """Show what a snapshot has of some groups, those that cannot be planned first."""
    wanted = pa.array(groups, pa.string())

    def of_groups(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.is_in(rows["group"], wanted))

    members, offsets = of_groups(snapshot.members), of_groups(snapshot.offsets)
    member_counts, partition_counts = _counts(members), _counts(offsets)
    rows = [
        {
            **row,
            "members": member_counts.get(row["group"], 0),
            "partitions": partition_counts.get(row["group"], 0),
        }
        for row in of_groups(snapshot.groups).to_pylist()
    ]
    rows.sort(key=lambda row: (row["error"] is None, row["group"]))
    return {
        "snapshot": snapshot.snapshot_id,
        "taken at": dg.MetadataValue.timestamp(snapshot.snapshot_at),
        "spread (s)": round(snapshot.spread_s, 3),
        "groups": len(rows),
        "groups that cannot be planned": sum(row["error"] is not None for row in rows),
        "members": members.num_rows,
        "partitions": offsets.num_rows,
        "by group": table(
            rows,
            {
                "group": "Consumer group",
                "state": "As its coordinator says",
                "members": "Members",
                "partitions": "Partitions of the topics it reads or has committed",
                "protocol": "The assignor in use",
                "error": "Why it cannot be planned",
            },
        ),
        **others(len(rows)),
    }


def _counts(rows: pa.Table) -> dict[str, int]:
    counted = rows.group_by("group").aggregate([([], "count_all")]).to_pylist()
    return {row["group"]: row["count_all"] for row in counted}
