"""Which snapshot a step is to work on: the newest one of each cohort.

Belongs here: finding it again from what the warehouse holds, so that a step can run in another
process than the one before, or again after a crash. Does not: reading or writing tables
(`warehouse`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.spark.warehouse import Warehouse


@dataclass(frozen=True)
class Recent:
    """A snapshot, and what of it a step is about.

    Parameters
    ----------
    snapshot_id, snapshot_at
        The snapshot; time-zone-aware.
    groups
        Its groups in the cohorts that were asked for, ascending. It may hold others.
    """

    snapshot_id: str
    snapshot_at: datetime
    groups: tuple[str, ...]


def newest(warehouse: Warehouse, cohorts: Iterable[str], table: str) -> list[Recent]:
    """Find the newest snapshot of each cohort that has a table.

    Parameters
    ----------
    warehouse
        Where snapshots are kept.
    cohorts
        What a run covers. Those without any snapshot are left out.
    table
        What must have been computed already: `groups` for the snapshot alone.

    Returns
    -------
    The snapshots, oldest first: one, where one run took the snapshot of all these cohorts.
    """
    missing = set(cohorts)
    found: list[Recent] = []
    for snapshot_id in reversed(warehouse.snapshots(table)):
        if not missing:
            break
        groups = warehouse.load("groups", snapshot_id)
        mine = groups.filter(pc.is_in(groups["cohort"], pa.array(sorted(missing), pa.string())))
        if mine.num_rows:
            missing -= set(mine["cohort"].to_pylist())
            found.append(
                Recent(
                    snapshot_id,
                    mine["snapshot_at"][0].as_py(),
                    tuple(sorted(mine["group"].to_pylist())),
                )
            )
    return found[::-1]
