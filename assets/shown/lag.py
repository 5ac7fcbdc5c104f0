"""Metadata of `partition_lag`: lag and statuses of partitions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from assets.presentation import ROWS, table
from fairlead.common.words import listed

_HEALTHY: Final = "OK"


def worst_first(lag: pa.Table) -> list[str]:
    """Return the groups in a table of lag; first the group with the largest lag of one partition.

    Partitions without a status are ignored: the group no longer reads their topics.
    """
    current_lag = pc.if_else(pc.is_valid(lag["status"]), lag["lag"], 0)
    lag = lag.set_column(lag.column_names.index("lag"), "lag", current_lag)
    heaviest = lag.group_by("group").aggregate([("lag", "max")])
    ordered = heaviest.sort_by([("lag_max", "descending"), ("group", "ascending")])
    return list(ordered["group"].to_pylist())


def describe(lag: pa.Table, groups: Sequence[str]) -> dict[str, Any]:
    """Return metadata about the lag of some groups.

    Parameters
    ----------
    lag
        Table of the schema `fairlead.spark.lag.LAG`.
    groups
        The groups, in the order of `worst_first`.
    """
    lag = lag.filter(pc.is_in(lag["group"], pa.array(groups, pa.string())))
    left_partitions = lag["status"].null_count
    lag = lag.filter(pc.is_valid(lag["status"]))
    counted = lag.group_by("status").aggregate([([], "count_all")]).to_pylist()
    statuses = {row["status"]: row["count_all"] for row in counted}
    heaviest = pc.select_k_unstable(lag, ROWS, [("lag", "descending"), ("topic", "ascending")])
    total = pc.sum(lag["lag"].cast(pa.decimal128(38))).as_py() or 0  # the sum can exceed int64
    return {
        "status": listed(sorted(f"{count:,} {status}" for status, count in statuses.items())),
        "total lag (records)": int(total),
        "heaviest partition (records)": pc.max(lag["lag"]).as_py() or 0,
        "partitions": lag.num_rows,
        "partitions with lag": pc.sum(pc.greater(lag["lag"], 0)).as_py() or 0,
        "partitions not OK": lag.num_rows - statuses.get(_HEALTHY, 0),
        "partitions of topics that the groups have left": left_partitions,
        "heaviest partitions": table([_row(row) for row in lag.take(heaviest).to_pylist()]),
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "group": row["group"],
        "topic-partition": f"{row['topic']}-{row['partition']}",
        "lag": row["lag"],
        "owner": row["member"],
        "arrive/s": row["arrival_rate"],
        "commit/s": row["consumption_rate"],
        "behind (s)": row["time_lag_s"],
        "status": row["status"],
    }
