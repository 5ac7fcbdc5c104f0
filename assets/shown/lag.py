"""What `partition_lag` shows: how much lag there is, where, how healthy, and how it went."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from assets.presentation import ROWS, columns_for, picture, table
from fairlead.common.words import listed
from fairlead.store.trend import LagTrend
from fairlead.surfaces.plots import lag_history, sparkline

_HEALTHY = "OK"
#: Columns that are empty before the second look.
RATES: Final = {
    "arrive/s": "Records a second produced; empty: not known",
    "commit/s": "Records a second committed; empty: not known",
    "behind s": "Age of the oldest record not yet processed; empty: not known",
}


def worst_first(lag: pa.Table) -> list[str]:
    """Return the groups of a table of lag, the one with the heaviest partition first.

    Partitions of topics that a group has left, which have no status, are not part of its lag.
    """
    mine = pc.if_else(pc.is_valid(lag["status"]), lag["lag"], 0)
    lag = lag.set_column(lag.column_names.index("lag"), "lag", mine)
    heaviest = lag.group_by("group").aggregate([("lag", "max")])
    ordered = heaviest.sort_by([("lag_max", "descending"), ("group", "ascending")])
    return list(ordered["group"].to_pylist())


def describe(lag: pa.Table, groups: Sequence[str], trend: LagTrend | None) -> dict[str, Any]:
    """Show the lag of some groups.

    Parameters
    ----------
    lag
        As `fairlead.spark.lag.snapshot_lag` measured it.
    groups
        The one with the heaviest partition first.
    trend
        How the lag of the first of them went; None: no plot is to be drawn.
    """
    lag = lag.filter(pc.is_in(lag["group"], pa.array(groups, pa.string())))
    left = lag["status"].null_count
    lag = lag.filter(pc.is_valid(lag["status"]))
    statuses = {row["status"]: row["count_all"] for row in _by_status(lag)}
    first = pc.select_k_unstable(lag, ROWS, [("lag", "descending"), ("topic", "ascending")])
    total = pc.sum(lag["lag"].cast(pa.decimal128(38))).as_py() or 0  # more than int64 has room for
    metadata: dict[str, Any] = {}
    if len(groups) > 1 and trend is not None and trend.at:
        metadata["shown in detail"] = groups[0]
    if trend is not None and len(trend.at) == 1:
        metadata["lag lately"] = (
            "one planning run so far: lag over time is drawn from the second on"
        )
    elif trend is not None and trend.at:
        alt = f"Lag of {groups[0]}: {len(trend.at)} snapshots since {trend.at[0]:%Y-%m-%d %H:%M}"
        label = f"{trend.total[-1]:,.0f} records"
        metadata["lag lately"] = picture(sparkline(trend.total, label), alt)
        metadata["lag history"] = picture(lag_history(trend.at, trend.total, trend.heaviest), alt)
    rates_known = bool(pc.any(pc.is_valid(lag["arrival_rate"])).as_py())
    if not rates_known:
        metadata["rates"] = "not known yet: they are the difference between two looks"
    if left:
        metadata["partitions of topics that the groups have left"] = left
    return metadata | {
        "status": listed(sorted(f"{count:,} {status}" for status, count in statuses.items())),
        "total lag (records)": int(total),
        "heaviest partition (records)": pc.max(lag["lag"]).as_py() or 0,
        "heaviest partitions": table(
            [_row(row) for row in lag.take(first).to_pylist()],
            columns_for(
                groups,
                {
                    "group": "Consumer group",
                    "topic-partition": "Which partition of which topic",
                    "lag": "Records not yet processed",
                    "owner": "Empty: nobody, or unknown",
                    **(RATES if rates_known else {}),
                    "status": "Health, as Burrow judges it",
                },
            ),
        ),
        "partitions": lag.num_rows,
        "partitions with lag": pc.sum(pc.greater(lag["lag"], 0)).as_py() or 0,
        "partitions not OK": lag.num_rows - statuses.get(_HEALTHY, 0),
    }


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "topic-partition": f"{row['topic']}-{row['partition']}",
        "owner": row["member"],
        "arrive/s": _rounded(row["arrival_rate"]),
        "commit/s": _rounded(row["consumption_rate"]),
        "behind s": _rounded(row["time_lag_s"]),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _by_status(lag: pa.Table) -> list[dict[str, Any]]:
    return list(lag.group_by("status").aggregate([([], "count_all")]).to_pylist())
