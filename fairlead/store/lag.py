"""Lag history: stores the lag of each partition in each snapshot, with COPY.

Belongs here: storing each snapshot once. Belongs elsewhere: computing lag (`fairlead.spark`).
"""

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import insert

from fairlead.store.bulk import copy_rows
from fairlead.store.models.history import LagSnapshot, PartitionLagRow
from fairlead.store.shared_statements import ensure_days, register_groups


def insert_lag(connection: Connection, lag: pa.Table) -> int:
    """Store the lag of snapshots that are not stored yet; see `PlanStore.record_lag`."""
    lag = lag.rename_columns(["group_id" if name == "group" else name for name in lag.column_names])
    snapshots = lag.group_by(["group_id", "snapshot_id", "snapshot_at"]).aggregate([])
    if not snapshots.num_rows:
        return 0
    # In a fixed order: otherwise two runs that store the same groups could deadlock.
    seen = sorted(snapshots.to_pylist(), key=lambda row: (row["group_id"], row["snapshot_at"]))
    register_groups(connection, (row["group_id"] for row in seen))
    new = connection.execute(
        insert(LagSnapshot)
        .on_conflict_do_nothing(index_elements=["group_id", "snapshot_id"])
        .returning(LagSnapshot.group_id, LagSnapshot.snapshot_id),
        seen,
    ).all()
    rows = lag
    # Join only if some snapshots are stored already: a join takes a tenth of the time of storing.
    if len(new) < len(seen):
        keys = pa.table(
            {
                "group_id": pa.array([row.group_id for row in new], pa.string()),
                "snapshot_id": pa.array([row.snapshot_id for row in new], pa.string()),
            }
        )
        rows = lag.join(keys, keys=["group_id", "snapshot_id"], join_type="inner")
    ensure_days(connection, pc.unique(rows["snapshot_at"].cast(pa.date32())).to_pylist())
    columns = [c.name for c in PartitionLagRow.__table__.columns if c.name in rows.column_names]
    copy_rows(connection, PartitionLagRow.__table__, rows.select(columns))
    return int(rows.num_rows)
