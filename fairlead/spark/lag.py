"""How far behind each partition is, how fast it fills and drains, and whether that is healthy.

Belongs here: lag, owner, rates, time lag and status, as DataFrame transforms of snapshots. Does
not: reading snapshots (`warehouse`), nor planning from lag (`candidates`).

Lag is KAFKA-5337's: with a commit, end - committed, never below 0; without one and reset policy
`latest`, 0; without one otherwise, end - begin. It follows that

- a commit below the log's start counts the records that are gone, too (status DATA_LOSS);
- a commit beyond the log's end, after an unclean election or on a re-created topic, is lag 0;
- in a compacted log, offsets count, not the records that remain: Kafka's own measure;
- a partition that does not exist any more, or whose offsets could not be read, has no lag and no
  row. The snapshot says why.

Rates and status look back at earlier snapshots. What these cannot tell is null, never a guess.
Status follows Burrow's rules, with snapshots for commits; the first that holds:

- DATA_LOSS: the committed offset lies below the log's start.
- REWIND: the committed offset went back since the snapshot before.
- OK: there is no lag.
- STOP: there has been lag for `STALLED_AFTER_S`, while nobody in the group committed anything.
- STALL: the same, but of this partition alone: others of the group were committed.
- WARN: there has been lag for so long that grew and never fell, although it was committed.
- OK: otherwise, also where history is too short to tell.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

STALLED_AFTER_S: Final = 60.0
SMOOTHING_S: Final = 900.0
"""Time constant of the rates: what happened so long ago counts 1/e of what happens now."""

_KEY: Final = ("group", "topic", "partition")
_MEASURED: Final = (
    "snapshot_id",
    "snapshot_at",
    *_KEY,
    "begin_offset",
    "end_offset",
    "committed_offset",
    "lag",
)
LAG_COLUMNS: Final = (
    *_MEASURED,
    "member",
    "arrival_rate",
    "consumption_rate",
    "time_lag_s",
    "status",
)


def partition_lag(
    offsets: DataFrame,
    reset_policy_by_group: Mapping[str, str],
    earlier: DataFrame | None = None,
    members: DataFrame | None = None,
) -> DataFrame:
    """Measure every partition of a snapshot.

    Parameters
    ----------
    offsets
        The table `offsets` of one snapshot.
    reset_policy_by_group
        Group to its consumers' `auto.offset.reset`; `earliest` for groups that are missing.
    earlier
        Offsets before it, as `fairlead.spark.earlier` reads them from looks, in any order; None:
        there are none. Groups that `offsets` lacks are ignored.
    members
        The table `members` of the snapshot; None: owners are not known.

    Returns
    -------
    DataFrame
        One row a partition that could be read, of the columns `LAG_COLUMNS`: lag in records, rates
        in records a second, time lag in seconds. `member` is null where nobody owns the partition,
        where nobody knows, and where claims contradict each other.

    Notes
    -----
    `arrival_rate` and `consumption_rate` are time-aware exponentially weighted means over the steps
    between snapshots: a step weighs as much as the decay covers it, whatever its length. Steps in
    which an offset went back are left out.

    `time_lag_s` is how long ago the log ended where the group stands now: interpolated between the
    snapshots around that moment; before the first of them, lag / `arrival_rate`; 0 without lag.
    """
    yes, no = sf.expr("true"), sf.expr("false")
    rows = offsets.withColumn("_current", yes)
    if earlier is not None:
        groups = offsets.select("group").distinct()
        before = earlier.join(groups, "group", "left_semi").withColumn("_current", no)
        rows = rows.unionByName(before, allowMissingColumns=True)
    steps = _steps(_with_lag(rows, reset_policy_by_group))
    figures = _summarise(steps).where("_current is not null")
    owned = (
        figures.withColumn("member", sf.lit(None).cast("string"))
        if members is None
        else figures.join(_owners(members), [*_KEY], "left")
    )
    in_group = Window.partitionBy("group")
    return owned.select(
        *(sf.col(f"_current.{name}").alias(name) for name in _MEASURED),
        "member",
        "arrival_rate",
        "consumption_rate",
        _time_lag().alias("time_lag_s"),
        _status(group_still_s=sf.min("_still_s").over(in_group)).alias("status"),
    )


def _owners(members: DataFrame) -> DataFrame:
    """Return the owner of each partition: `assignors.claims` in Spark's terms."""
    claims = members.select(
        "group",
        "member",
        sf.coalesce("generation", sf.lit(-1)).alias("_generation"),
        sf.inline("partitions"),  # topic, partition
    )
    newest = sf.max("_generation").over(Window.partitionBy(*_KEY))
    holds = claims.withColumn("_newest", newest).where("_generation = _newest")
    only = sf.when(sf.count("*") == 1, sf.min("member"))
    return holds.groupBy(*_KEY).agg(only.alias("member"))


def _with_lag(offsets: DataFrame, reset_policy_by_group: Mapping[str, str]) -> DataFrame:
    """Add `lag` by KAFKA-5337's rule; drop partitions that could not be read."""
    latest = [group for group, policy in reset_policy_by_group.items() if policy == "latest"]
    end, committed = sf.col("end_offset"), sf.col("committed_offset")
    lag = (
        sf.when(committed.isNotNull(), sf.greatest(end - committed, sf.lit(0)))
        .when(sf.col("group").isin(latest), 0)
        .otherwise(end - sf.col("begin_offset"))
    )
    readable = end.isNotNull() & sf.col("begin_offset").isNotNull()
    return offsets.where(readable).withColumn("lag", lag.cast("long"))


def _steps(rows: DataFrame) -> DataFrame:
    """Add to each row what happened since the row before it, and what the current row says.

    `_at`, `_now`: seconds since the epoch, of the row and of the newest one. `_step_s`, `_arrived`,
    `_consumed`, `_grown`: differences to the row before, null for the first. `_moved_at`: `_at`
    where the commit is another one than in the row before. `_behind_since`: `_at` of the first row
    after the last one without lag. `_position`: where the group stands now.
    """
    of_partition = Window.partitionBy(*_KEY)
    in_time = of_partition.orderBy("snapshot_at")
    at = sf.unix_micros("snapshot_at") / 1e6
    current = sf.col("_current")

    def since(name: str) -> Column:
        return sf.col(name) - sf.lag(name).over(in_time)

    changed = ~sf.col("committed_offset").eqNullSafe(sf.lag("committed_offset").over(in_time))
    rows = rows.withColumn("_at", at).withColumn(
        "_idle_at", sf.max(sf.when(sf.col("lag") == 0, at)).over(of_partition)
    )
    behind = sf.col("_idle_at").isNull() | (sf.col("_at") > sf.col("_idle_at"))
    return rows.select(
        "*",
        sf.max("_at").over(of_partition).alias("_now"),
        since("_at").alias("_step_s"),
        since("end_offset").alias("_arrived"),
        since("committed_offset").alias("_consumed"),
        since("lag").alias("_grown"),
        sf.when((sf.row_number().over(in_time) > 1) & changed, sf.col("_at")).alias("_moved_at"),
        sf.min(sf.when(behind, sf.col("_at"))).over(of_partition).alias("_behind_since"),
        sf.max(sf.when(current, sf.col("end_offset") - sf.col("lag")))
        .over(of_partition)
        .alias("_position"),
    )


def _summarise(steps: DataFrame) -> DataFrame:
    """Reduce the rows of each partition to one.

    `_current`: the current row, null where the partition was read earlier alone. `_still_s`: for
    how long nothing has been committed. `_behind_s`: for how long there has been lag. `_before`,
    `_after`: when the log ended at or before the group's position, and first behind it.
    """
    at, end = sf.col("_at"), sf.col("end_offset")
    grown = sf.when(at > sf.col("_behind_since"), sf.col("_grown"))
    moment = sf.struct(at.alias("at"), end.alias("end"))
    passed = end <= sf.col("_position")
    now = sf.max("_now")
    return steps.groupBy(*_KEY).agg(
        sf.max(sf.when(sf.col("_current"), sf.struct(*_MEASURED))).alias("_current"),
        _rate("_arrived").alias("arrival_rate"),
        _rate("_consumed").alias("consumption_rate"),
        sf.max_by("_consumed", "_at").alias("_consumed_last"),
        (now - sf.coalesce(sf.max("_moved_at"), sf.min("_at"))).alias("_still_s"),
        (now - sf.max("_behind_since")).alias("_behind_s"),
        sf.sum(grown).alias("_grown"),
        sf.min(grown).alias("_grown_least"),
        sf.max(sf.when(passed, moment)).alias("_before"),
        sf.min(sf.when(~passed, moment)).alias("_after"),
        now.alias("_now"),
    )


def _rate(difference: str) -> Column:
    """Average a difference per second over the steps, recent ones weighing more."""
    step_s = sf.col("_step_s")
    age_s = sf.col("_now") - sf.col("_at")
    weight = sf.exp(-age_s / SMOOTHING_S) * (1 - sf.exp(-step_s / SMOOTHING_S))
    usable = (step_s > 0) & (sf.col(difference) >= 0)
    per_s = sf.col(difference) / step_s
    return sf.sum(sf.when(usable, weight * per_s)) / sf.sum(sf.when(usable, weight))


def _time_lag() -> Column:
    before, after = sf.col("_before"), sf.col("_after")
    lag = sf.col("_current.lag")
    position = sf.col("_current.end_offset") - lag
    share = (position - before["end"]) / (after["end"] - before["end"])
    reached_at = before["at"] + share * (after["at"] - before["at"])
    in_history = before.isNotNull() & after.isNotNull() & (before["at"] < after["at"])
    return (
        sf.when(lag == 0, 0.0)
        .when(in_history, sf.col("_now") - reached_at)
        .when(sf.col("arrival_rate") > 0, lag / sf.col("arrival_rate"))
    )


def _status(group_still_s: Column) -> Column:
    lag, committed = sf.col("_current.lag"), sf.col("_current.committed_offset")
    lagging = sf.col("_behind_s") >= STALLED_AFTER_S
    return (
        sf.when(committed < sf.col("_current.begin_offset"), "DATA_LOSS")
        .when(sf.col("_consumed_last") < 0, "REWIND")
        .when(lag == 0, "OK")
        .when(lagging & (group_still_s >= STALLED_AFTER_S), "STOP")
        .when(lagging & (sf.col("_still_s") >= STALLED_AFTER_S), "STALL")
        .when(lagging & (sf.col("_grown") > 0) & (sf.col("_grown_least") >= 0), "WARN")
        .otherwise("OK")
    )
