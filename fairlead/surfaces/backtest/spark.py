"""Replays in Spark: a group's samples from the archive, one task an assignor.

Belongs here: finding a group's samples, running the replays. Does not: what a replay does
(`replay`), nor the summary (`report`).

Executors need `fairlead` with its settings' dependencies: policies decide within a replay.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from assignors.problem import InvalidProblemError
from assignors.registry import option_defaults
from fairlead.archive import SampleArchive
from fairlead.common.words import listed
from fairlead.domain.candidate_figures import OBSERVED
from fairlead.domain.policy import Policy
from fairlead.errors import ConfigurationError, GroupError
from fairlead.surfaces.backtest.recording import Recording, replayable
from fairlead.surfaces.backtest.replay import RECORDED, replay

_EPOCH: Final = datetime(1970, 1, 2, tzinfo=UTC)
STRETCHES: Final = pa.schema(
    {
        "in_charge": pa.string(),
        "skipped": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
        "over_objective_s": pa.float64(),
        "worst_s": pa.float64(),
        "moved": pa.int64(),
        "published": pa.int64(),
        "held_back": pa.int64(),
        "downtime_s": pa.float64(),
    }
)
"""One row per assignor and sample, except the first sample: figures since the sample before.
`skipped` is the reason if a sample was not replayed; the figures are then null."""


@dataclass(frozen=True)
class Recorded:
    """The samples of a group to replay, as tasks find them.

    Parameters
    ----------
    warehouse
        The path of the warehouse with the archive.
    group
        The consumer group.
    first, last
        Times of the first and the last sample; time-zone-aware.
    """

    warehouse: str
    group: str
    first: datetime
    last: datetime

    def samples(self) -> pa.Table:
        """Read the samples, by time."""
        return SampleArchive(self.warehouse).read(self.first, self.last, [self.group])


def find_samples(
    archive: SampleArchive,
    group: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Recorded:
    """Find the samples of a group from `since` to before `until`; None: all.

    Raises
    ------
    GroupError
        The archive has no sample of this group, or none in this period; the message lists the
        stored groups or the stored period.
    """
    now = datetime.now(UTC)
    moments = archive.read(_EPOCH, now, [group], columns=["group", "at"])["at"].to_pylist()
    if not moments:
        known = archive.groups(_EPOCH, now)
        raise GroupError(
            f"No sample of group {group} is stored, only samples of {listed(known, at_most=10)}"
            if known
            else "No samples are stored: the sensor group_samples takes one each minute"
        )
    within = [
        at for at in moments if (since is None or at >= since) and (until is None or at < until)
    ]
    if not within:
        first, last = (moments[end].isoformat(timespec="seconds") for end in (0, -1))
        raise GroupError(
            f"No sample of group {group} is stored in this period; it has {len(moments):,}, from "
            f"{first} to {last}"
        )
    return Recorded(archive.warehouse, group, within[0], within[-1])


def backtest(
    spark: SparkSession, recorded: Recorded, policy: Policy, assignors: Sequence[str] = ()
) -> pa.Table:
    """Replay a group's arrivals with each assignor in charge, and with its own assignments.

    Parameters
    ----------
    recorded
        The result of `find_samples`.
    policy
        The group's policy.
    assignors
        Names of `assignors.registry`; none: those of the policy.

    Returns
    -------
    Rows of the schema `STRETCHES`, by `in_charge` and time: `RECORDED` is what was measured,
    `OBSERVED` replays the group's own assignments. All replays skip samples in which the group
    could not be read, had no member, or read nothing.

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
    replays = (RECORDED, OBSERVED, *names)

    def replayed(tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.column(0).to_pylist():
                yield from replay_samples(recorded.samples(), replays[task], policy).to_batches()

    tasks = spark.range(0, len(replays), 1, len(replays))
    rows = tasks.mapInArrow(replayed, from_arrow_schema(STRETCHES))
    return rows.orderBy("in_charge", "at").toArrow()


def replay_samples(samples: pa.Table, in_charge: str, policy: Policy) -> pa.Table:
    """Replay a group's samples, by time, with one assignor: rows of the schema `STRETCHES`."""
    samples, skipped = replayable(samples)
    rows: list[dict[str, Any]] = [{"at": at, "skipped": why} for at, why in skipped]
    if samples.num_rows > 1:
        latest = policy.auto_offset_reset == "latest"
        recording = Recording.of(samples, latest=latest)
        rows += [asdict(stretch) for stretch in replay(recording, in_charge, policy)]
    return pa.Table.from_pylist([{"in_charge": in_charge, **row} for row in rows], STRETCHES)
