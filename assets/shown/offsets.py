"""Metadata of `group_offsets`: the snapshot, and the groups that could not be read."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.presentation import others, table
from fairlead.domain.samples import GroupSnapshot


def describe(snapshot: GroupSnapshot, groups: Sequence[str]) -> dict[str, Any]:
    """Return metadata about some groups of a snapshot; those that cannot be planned come first."""
    wanted = pa.array(groups, pa.string())

    samples = snapshot.samples.filter(pc.is_in(snapshot.samples["group"], wanted))
    described = samples.select(["group", "state", "protocol", "error"]).to_pylist()
    members, partitions = (
        pc.list_value_length(samples[name]).to_pylist() for name in ("members", "end")
    )
    rows = [
        {
            "group": row["group"],
            "state": row["state"],
            "members": member_count,
            "partitions": partition_count,
            "assignor in use": row["protocol"],
            "why it cannot be planned": row["error"],
        }
        for row, member_count, partition_count in zip(described, members, partitions, strict=True)
    ]
    rows.sort(key=lambda row: (row["why it cannot be planned"] is None, row["group"]))
    return {
        "snapshot": snapshot.snapshot_id,
        "taken at": dg.MetadataValue.timestamp(snapshot.snapshot_at),
        "time taken (s)": round(snapshot.spread_s, 3),
        "groups": len(rows),
        "groups that cannot be planned": sum(
            row["why it cannot be planned"] is not None for row in rows
        ),
        "members": sum(members),
        "partitions": sum(partitions),
        "by group": table(rows),
        **others(len(rows)),
    }
