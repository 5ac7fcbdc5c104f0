"""Metadata of `partition_lag`: lag and statuses of partitions."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fairlead.common.words import listed

_HEALTHY: Final = "OK"


def worst_first(lag: pa.Table) -> list[str]:
    """Return the groups of a table of lag, the one with the heaviest partition first.

    Partitions of topics that a group has left, which have no status, are not part of its lag.
    """
    current_lag = pc.if_else(pc.is_valid(lag["status"]), lag["lag"], 0)
    lag = lag.set_column(lag.column_names.index("lag"), "lag", current_lag)
    heaviest = lag.group_by("group").aggregate([("lag", "max")])
    ordered = heaviest.sort_by([("lag_max", "descending"), ("group", "ascending")])
    return list(ordered["group"].to_pylist())


def describe(lag: pa.Table, groups: Sequence[str]) -> dict[str, Any]:
    """Return the lag of some groups.

    Parameters
    ----------
    lag
        Table of the schema `fairlead.spark.lag.LAG`.
    groups
        The groups, the one with the heaviest partition first.
    """
    lag = lag.filter(pc.is_in(lag["group"], pa.array(groups, pa.string())))
    left_partitions = lag["status"].null_count
    lag = lag.filter(pc.is_valid(lag["status"]))
    counted = lag.group_by("status").aggregate([([], "count_all")]).to_pylist()
    statuses = {row["status"]: row["count_all"] for row in counted}
    total = pc.sum(lag["lag"].cast(pa.decimal128(38))).as_py() or 0  # the sum can exceed int64
    return {
        "status": listed(sorted(f"{count:,} {status}" for status, count in statuses.items())),
        "total lag (records)": int(total),
        "heaviest partition (records)": pc.max(lag["lag"]).as_py() or 0,
        "partitions": lag.num_rows,
        "partitions with lag": pc.sum(pc.greater(lag["lag"], 0)).as_py() or 0,
        "partitions not OK": lag.num_rows - statuses.get(_HEALTHY, 0),
        "partitions of topics that the groups have left": left_partitions,
    }
