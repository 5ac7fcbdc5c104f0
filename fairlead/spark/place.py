"""Where a task finds its tables.

Belongs here: what is handed to executors, without Spark. Does not: dealing groups out (`dealing`).
"""

from dataclasses import dataclass
from datetime import datetime

from fairlead.spark.warehouse import Warehouse


@dataclass(frozen=True)
class Place:
    """A warehouse, and the snapshot that a task is about."""

    warehouse: str
    snapshot_id: str
    snapshot_at: datetime

    @classmethod
    def of(cls, warehouse: Warehouse, snapshot_id: str) -> "Place | None":
        """Return where a snapshot is; None: it has no groups."""
        groups = warehouse.load("groups", snapshot_id, columns=["snapshot_at"])
        if not groups.num_rows:
            return None
        return cls(warehouse.path, snapshot_id, groups["snapshot_at"][0].as_py())
