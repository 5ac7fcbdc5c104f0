"""Replays in Spark: snapshots from the warehouse, one task an assignor.

Belongs here: finding a group's snapshots, cutting them into problems, running the replays. Does
not: what a replay is (`replay`), nor what is made of it (`report`).

Executors need `fairlead` with its settings' dependencies: policies decide within a replay.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from assignors.problem import InvalidProblemError
from assignors.registry import option_defaults
from fairlead.backtest.problems import group_problem
from fairlead.backtest.replay import OBSERVED, Snapshot, replay
from fairlead.errors import ConfigurationError, GroupError
from fairlead.policy import Policy
from fairlead.spark.warehouse import Warehouse
from fairlead.tables import slices

MOMENTS: Final = pa.schema(
    {
        "assignor": pa.string(),
        "skipped": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
        "heaviest": pa.int64(),
        "mean": pa.float64(),
        "lower_bound": pa.int64(),
        "moved": pa.int64(),
        "published": pa.bool_(),
        "held_back": pa.bool_(),
    }
)
"""One row an assignor and snapshot; `skipped`: why it was passed over, then without figures."""

_LAG: Final = (
    "snapshot_id string, topic string, partition int, lag long, arrival_rate double, status string"
)


@dataclass(frozen=True)
class Recorded:
    """The snapshots of a group in a span of time.

    Parameters
    ----------
    group
        The consumer group.
    ids
        The snapshots, in order of time.
    unmeasured
        Of these, the ones whose lag was never computed.
    """

    group: str
    ids: tuple[str, ...]
    unmeasured: tuple[str, ...] = ()


def find_snapshots(
    spark: SparkSession,
    warehouse: Warehouse,
    group: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Recorded:
    """Find the snapshots of a group from `since` to before `until`; None: all there are.

    Raises
    ------
    GroupError
        The warehouse holds no snapshot, none of this group, or none in this span: the message says
        which there are.
    """
    ids = warehouse.snapshots()
    if not ids:
        raise GroupError("The warehouse holds no snapshot: nothing was planned yet, or all is gone")
    groups = warehouse.read_all(spark, "groups", ids)
    rows = (
        groups.where(sf.col("group") == group)
        .select("snapshot_id", "snapshot_at")
        .orderBy("snapshot_id")
        .toArrow()
        .to_pylist()
    )
    if not rows:
        known = [row[0] for row in groups.select("group").distinct().orderBy("group").take(10)]
        raise GroupError(
            f"The warehouse holds no snapshot of group {group}; it holds some of "
            f"{', '.join(known)}{', ...' if len(known) == 10 else ''}"  # noqa: PLR2004 - as above
        )
    found = [
        row["snapshot_id"]
        for row in rows
        if (since is None or row["snapshot_at"] >= since)
        and (until is None or row["snapshot_at"] < until)
    ]
    if not found:
        first, last = (rows[end]["snapshot_at"].isoformat(timespec="seconds") for end in (0, -1))
        raise GroupError(
            f"The warehouse holds no snapshot of group {group} in this span; there are "
            f"{len(rows):,}, from {first} to {last}"
        )
    measured = set(warehouse.snapshots("lag"))
    return Recorded(group, tuple(found), tuple(name for name in found if name not in measured))


def backtest(
    spark: SparkSession,
    warehouse: Warehouse,
    recorded: Recorded,
    policy: Policy,
    assignors: Sequence[str] = (),
) -> pa.Table:
    """Replay a group's snapshots with each assignor in charge, and as they were (`OBSERVED`).

    Parameters
    ----------
    recorded
        What `find_snapshots` found.
    policy
        The group's.
    assignors
        Names of `assignors.registry`; none: those of the policy.

    Returns
    -------
    Rows of the schema `MOMENTS`, by assignor and time. Snapshots in which the group could not be
    read, had no member, or had partitions of unknown lag are skipped, for all assignors alike;
    what an assignor has assigned is carried over to the next.

    Raises
    ------
    ConfigurationError
        There is no such assignor.
    """
    names = tuple(dict.fromkeys(assignors or policy.assignors))
    try:
        for name in names:
            option_defaults(name)
    except InvalidProblemError as error:
        raise ConfigurationError(str(error)) from None
    each = sf.explode(sf.array(*(sf.lit(name) for name in (OBSERVED, *names))))
    rosters, loads = _tables(spark, warehouse, recorded)

    def replayed(key: tuple[pa.Scalar, ...], roster: pa.Table, load: pa.Table) -> pa.Table:
        return replay_tables(roster, load, key[0].as_py(), policy)

    return (
        rosters.withColumn("assignor", each)
        .groupBy("assignor")
        .cogroup(loads.withColumn("assignor", each).groupBy("assignor"))
        .applyInArrow(replayed, from_arrow_schema(MOMENTS))
        .orderBy("assignor", "at")
        .toArrow()
    )


def replay_tables(roster: pa.Table, loads: pa.Table, assignor: str, policy: Policy) -> pa.Table:
    """Replay one assignor on tables.

    Parameters
    ----------
    roster
        One row a snapshot and member: snapshot_id, snapshot_at, error and the columns of members,
        which are null in the one row of a snapshot without members.
    loads
        One row a snapshot and partition: snapshot_id, topic, partition, weight (the lag),
        arrival_rate, status.

    Returns
    -------
    Rows of the schema `MOMENTS`.
    """
    skipped: list[dict[str, Any]] = []
    moments = replay(_snapshots(roster, loads, skipped), assignor, policy)
    rows = [asdict(moment) for moment in moments]
    return pa.Table.from_pylist(
        [{"assignor": assignor, **row} for row in (*rows, *skipped)], MOMENTS
    )


def _tables(
    spark: SparkSession, warehouse: Warehouse, recorded: Recorded
) -> tuple[DataFrame, DataFrame]:
    """Read who was there in each snapshot, and how heavy the partitions were."""
    mine = sf.col("group") == recorded.group
    unmeasured = sf.lit("its lag was never computed")
    groups = (
        warehouse.read_all(spark, "groups", recorded.ids)
        .where(mine)
        .select(
            "snapshot_id",
            "snapshot_at",
            sf.when(sf.col("snapshot_id").isin(*recorded.unmeasured), unmeasured)
            .otherwise(sf.col("error"))
            .alias("error"),
        )
    )
    members = warehouse.read_all(spark, "members", recorded.ids).where(mine).drop("group")
    measured = [name for name in recorded.ids if name not in set(recorded.unmeasured)]
    if measured:
        lag = warehouse.read_all(spark, "lag", measured).where(mine)
    else:
        lag = spark.createDataFrame([], _LAG)
    loads = lag.select(
        "snapshot_id", "topic", "partition", sf.col("lag").alias("weight"), "arrival_rate", "status"
    )
    return groups.join(members, "snapshot_id", "left"), loads


def _snapshots(
    roster: pa.Table, loads: pa.Table, skipped: list[dict[str, Any]]
) -> Iterator[Snapshot]:
    """Build the snapshots one by one; those that cannot be replayed are added to `skipped`."""
    loads_of = slices(loads, "snapshot_id")
    nothing = loads.slice(0, 0)
    for name, members in slices(roster, "snapshot_id").items():
        load = loads_of.get(name, nothing)
        first = members.slice(0, 1).to_pylist()[0]
        try:
            problem = None if first["error"] else group_problem(members, load)
        except ValueError as error:  # partitions of unknown lag
            problem, first["error"] = None, str(error)
        if problem is not None and problem.members and problem.partition_total:
            statuses = frozenset(load["status"].unique().to_pylist())
            yield Snapshot(first["snapshot_at"], problem, statuses)
            continue
        reason = first["error"] or "no member reads a partition"
        skipped.append({"at": first["snapshot_at"], "skipped": reason})
