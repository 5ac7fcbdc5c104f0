"""Metadata of `group_offsets`: the snapshot and its size."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from fairlead.domain.samples import GroupSnapshot


def describe(snapshot: GroupSnapshot, groups: Sequence[str]) -> dict[str, Any]:
    """Return the numbers of members and partitions of some groups."""
    wanted = pa.array(groups, pa.string())
    samples = snapshot.samples.filter(pc.is_in(snapshot.samples["group"], wanted))
    members, partitions = (
        pc.sum(pc.list_value_length(samples[name])).as_py() or 0 for name in ("members", "end")
    )
    return {
        "snapshot": snapshot.snapshot_id,
        "taken at": dg.MetadataValue.timestamp(snapshot.snapshot_at),
        "spread (s)": round(snapshot.spread_s, 3),
        "groups": samples.num_rows,
        "groups that cannot be planned": samples.num_rows - samples["error"].null_count,
        "members": members,
        "partitions": partitions,
    }
