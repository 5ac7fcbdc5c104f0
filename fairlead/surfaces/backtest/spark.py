"""Replays in Spark: snapshots from the warehouse, one task an assignor.

Belongs here: finding a group's snapshots, cutting them into recordings, running the replays. Does
not: what a replay is (`replay`), nor what is made of it (`report`).

Executors need `fairlead` with its settings' dependencies: policies decide within a replay.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from assignors.problem import InvalidProblemError
from assignors.registry import option_defaults
from fairlead.common.tables import slices
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.judgement.looks import NONE
from fairlead.domain.looks.questions import owned_by_topic
from fairlead.domain.policy import Policy
from fairlead.errors import ConfigurationError, GroupError
from fairlead.simulation.world import Int64
from fairlead.spark.warehouse import Warehouse
from fairlead.surfaces.backtest.recording import Recording, Snapshot
from fairlead.surfaces.backtest.replay import RECORDED, replay

STRETCHES: Final = pa.schema(
    {
        "in_charge": pa.string(),
        "skipped": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
        "late_s": pa.float64(),
        "worst_s": pa.float64(),
        "moved": pa.int64(),
        "published": pa.int64(),
        "held_back": pa.int64(),
        "paused_s": pa.float64(),
    }
)
"""One row for whoever is in charge and each snapshot but the first, with what happened since the
one before; `skipped`: why a snapshot was passed over, then without figures."""


@dataclass(frozen=True)
class RecordedSnapshots:
    """The snapshots of a group in a span of time.

    Parameters
    ----------
    group
        The consumer group.
    ids
        The snapshots, in order of time; the lag of each was computed.
    """

    group: str
    ids: tuple[str, ...]


def find_snapshots(
    warehouse: Warehouse,
    group: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> RecordedSnapshots:
    """Find the snapshots of a group from `since` to before `until`, without Spark; None: all.

    Raises
    ------
    GroupError
        The warehouse holds no snapshot, none of this group, or none in this span: the message says
        which there are.
    """
    written = set(warehouse.snapshots("groups"))
    ids = [name for name in warehouse.snapshots("lag") if name in written]
    if not ids:
        raise GroupError(
            "The warehouse holds no snapshots: no planning run has stored one, or all were pruned"
        )
    columns = ["group", "snapshot_id", "snapshot_at"]
    groups = warehouse.load_all("groups", ids, columns)
    rows = groups.filter(pc.equal(groups["group"], group)).sort_by("snapshot_id").to_pylist()
    if not rows:
        known = sorted(pc.unique(groups["group"]).to_pylist())[:10]
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
    return RecordedSnapshots(group, tuple(found))


def backtest(
    spark: SparkSession,
    warehouse: Warehouse,
    recorded: RecordedSnapshots,
    policy: Policy,
    assignors: Sequence[str] = (),
) -> pa.Table:
    """Replay a group's arrivals with each assignor in charge, and with its own assignments.

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
    Rows of the schema `STRETCHES`, by who is in charge and time; what was really measured is
    `RECORDED`, the group's own assignments replayed `OBSERVED`. Snapshots in which the group could
    not be read, had no member, or read nothing are skipped, for all alike.

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
    everybody = (RECORDED, OBSERVED, *names)
    each = sf.explode(sf.array(*(sf.lit(name) for name in everybody)))
    rosters, offsets = _tables(spark, warehouse, recorded)

    def replayed(key: tuple[pa.Scalar, ...], roster: pa.Table, known: pa.Table) -> pa.Table:
        return replay_tables(roster, known, key[0].as_py(), policy)

    return (
        rosters.withColumn("in_charge", each)
        .groupBy("in_charge")
        .cogroup(offsets.withColumn("in_charge", each).groupBy("in_charge"))
        .applyInArrow(replayed, from_arrow_schema(STRETCHES))
        .orderBy("in_charge", "at")
        .toArrow()
    )


def replay_tables(roster: pa.Table, offsets: pa.Table, in_charge: str, policy: Policy) -> pa.Table:
    """Replay with one in charge, on tables.

    Parameters
    ----------
    roster
        One row a snapshot and member: snapshot_id, snapshot_at, error and the columns of members,
        which are null in the one row of a snapshot without members.
    offsets
        One row a snapshot and partition: snapshot_id, topic, partition, begin_offset, end_offset,
        committed_offset and status.

    Returns
    -------
    Rows of the schema `STRETCHES`.
    """
    skipped: list[dict[str, Any]] = []
    snapshots = list(_snapshots(roster, offsets, skipped))
    rows: list[dict[str, Any]] = []
    if len(snapshots) > 1:
        latest = policy.auto_offset_reset == "latest"
        recording = Recording.of(snapshots, latest=latest)
        rows = [asdict(stretch) for stretch in replay(recording, in_charge, policy)]
    return pa.Table.from_pylist(
        [{"in_charge": in_charge, **row} for row in (*rows, *skipped)], STRETCHES
    )


def _tables(
    spark: SparkSession, warehouse: Warehouse, recorded: RecordedSnapshots
) -> tuple[DataFrame, DataFrame]:
    """Read who was there in each snapshot, and where its partitions stood."""
    mine = sf.col("group") == recorded.group
    groups = (
        warehouse.read_all(spark, "groups", recorded.ids)
        .where(mine)
        .select("snapshot_id", "snapshot_at", "error")
    )
    members = warehouse.read_all(spark, "members", recorded.ids).where(mine).drop("group")
    lag = warehouse.read_all(spark, "lag", recorded.ids).where(mine)
    offsets = (f"{name}_offset" for name in ("begin", "end", "committed"))
    known = lag.select("snapshot_id", "topic", "partition", *offsets, "status")
    return groups.join(members, "snapshot_id", "left"), known


def _snapshots(
    roster: pa.Table, offsets: pa.Table, skipped: list[dict[str, Any]]
) -> Iterator[Snapshot]:
    """Cut tables into snapshots, by time; those that cannot be replayed are added to `skipped`."""
    offsets_of = slices(offsets, "snapshot_id")
    nothing = offsets.slice(0, 0)
    for name, members in slices(roster, "snapshot_id").items():
        first = members.slice(0, 1).to_pylist()[0]
        rows = members.filter(pc.is_valid(members["member"])).to_pylist()
        known = offsets_of.get(name, nothing)
        read = {topic for row in rows for topic in row["topics"]}
        known = known.filter(pc.is_in(known["topic"], pa.array(sorted(read), pa.string())))
        reason = first["error"]
        if reason is None and not (rows and known.num_rows):
            reason = "no member reads a partition"
        if reason is not None:
            skipped.append({"at": first["snapshot_at"], "skipped": reason})
            continue
        cut = {key: _by_topic(known, f"{key}_offset") for key in ("begin", "end", "committed")}
        yield Snapshot(
            at=first["snapshot_at"],
            members={row["member"]: row["topics"] for row in rows},
            owned={row["member"]: owned_by_topic(row["partitions"]) for row in rows},
            **cut,
            statuses=frozenset(known["status"].drop_null().unique().to_pylist()),
        )


def _by_topic(known: pa.Table, column: str) -> dict[str, Int64]:
    """Return a column as one array a topic; -1 where nothing is known."""
    found: dict[str, Int64] = {}
    for topic, rows in slices(known, "topic").items():
        numbers = rows["partition"].to_numpy()
        values = np.full(int(numbers.max()) + 1, NONE, np.int64)
        values[numbers] = rows[column].fill_null(NONE).to_numpy()
        found[topic] = values
    return found
