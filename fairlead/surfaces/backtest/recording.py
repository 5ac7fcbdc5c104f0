"""A recorded group as a simulated world: arrivals, and which members were present.

Belongs here: converting samples to arrays. Belongs elsewhere: how fast members were (`speeds`),
reading samples (`replays`), and running assignors in the world (`replay`). No I/O.

Arrivals do not depend on the assignment, so a replay uses the recorded arrivals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from assignors.problem import kafka_order
from fairlead.domain.analysis.commits import read_commits
from fairlead.domain.analysis.read import HISTORY_S, LEAST_SAMPLES
from fairlead.domain.analysis.sample_series import NONE, SampleSeries
from fairlead.domain.samples.arrays import arrays_of
from fairlead.domain.samples.lag import partition_statuses
from fairlead.simulation.world import Float64, Int64, Mask, Roster, World
from fairlead.surfaces.backtest.speeds import grown_ends, hourly_speeds

#: Maximum number of steps of a replay. A step is `_STEP_S` seconds long. If the recording is too
#: long for this, a step is a multiple of `_STEP_S`.
_MOST_STEPS: Final = 20_000
_STEP_S: Final = 10.0
#: A commit interval can be measured only if it is longer than this many sampling intervals.
_MEASURABLE: Final = 2.0
#: Default of `auto.commit.interval.ms`.
_AUTO_COMMIT_S: Final = 5.0
#: Seed of random numbers: when records arrive, and when members commit. It is fixed, so that a
#: repeated replay has the same result.
_SEED: Final = 0


@dataclass(frozen=True, eq=False)
class Recording:
    """Recorded samples of a group. L: number of samples; M: of members; P: of partitions.

    Parameters
    ----------
    start
        When the first sample was taken.
    roster
        All members and topics in any of the samples.
    series
        The samples as arrays over all partitions. Members are numbered as in the roster.
    present
        Which members were present in each sample, bool of shape (L, M).
    """

    start: datetime
    roster: Roster
    series: SampleSeries
    present: Mask

    @classmethod
    def of(cls, samples: pa.Table, *, latest: bool = False) -> "Recording":
        """Return a recording of samples, with all partitions to which members subscribe.

        Parameters
        ----------
        samples
            At least two, from `replayable`.
        latest
            Whether consumers without a commit start at the log's end.
        """
        rows = samples.select(["at", "topics", "counts", "members", "subscriptions"]).to_pylist()
        roster = _roster(rows)
        series = arrays_of(
            samples, roster.topics, roster.counts, roster.members, latest=latest, every=True
        )
        unread = _unread_partitions(rows, roster)
        end = np.where(unread, NONE, series.end)
        begin, committed = (np.where(unread, NONE, log) for log in (series.begin, series.committed))
        owner = np.where(end < 0, np.int32(NONE), series.owner)
        series = replace(series, begin=begin, end=end, committed=committed, owner=owner)
        commit_s = read_commits(series.last(HISTORY_S, LEAST_SAMPLES)).usual_interval_s
        if commit_s <= _MEASURABLE * series.step:  # too short to be measured: assume the default
            commit_s = _AUTO_COMMIT_S
        present = np.array([[name in row["members"] for name in roster.members] for row in rows])
        roster = replace(roster, commit_s=min(commit_s, HISTORY_S))
        return cls(rows[0]["at"], roster, series, present)

    def statuses(self, sample: int) -> frozenset[str]:
        """Return the set of statuses that occur among the partitions in a sample."""
        return frozenset(partition_statuses(self.series.until(sample)))

    @cached_property
    def seconds(self) -> Float64:
        """Seconds from the first sample to each sample, shape (L,)."""
        seconds: Float64 = self.series.at - self.series.at[0]
        return seconds

    @cached_property
    def step_s(self) -> float:
        """Length of a step of the replay, in seconds."""
        return _step_s(float(self.seconds[-1]))

    @cached_property
    def steps(self) -> Int64:
        """For each sample, the number of the step whose start is nearest; int64, shape (L,)."""
        steps: Int64 = np.floor(self.seconds / self.step_s + 0.5).astype(np.int64)
        return steps

    @cached_property
    def lags(self) -> Float64:
        """Time lag of each partition at each sample, in seconds, float64 of shape (L, P).

        If the committed offset is 100, for example, the time lag is the time since the end offset
        was 100.
        """
        ends, lag = grown_ends(self.series).astype(np.float64), self.series.lag
        behind = np.zeros(ends.shape)
        for partition in np.flatnonzero(lag.any(axis=0)).tolist():
            end = ends[:, partition]
            ended_at = np.interp(end - lag[:, partition], end, self.seconds)
            behind[:, partition] = self.seconds - ended_at
        lags: Float64 = np.where(lag > 0, behind, 0.0)
        return lags

    def latest(self, step: int) -> int:
        """Return the index of the last sample that was taken before or at the start of a step."""
        return int(np.searchsorted(self.steps, step, side="right")) - 1

    def world(self) -> World:
        """Return the recorded group as a world for the simulation.

        Each record that arrived between two samples arrives in a random step between them.
        """
        series, steps = self.series, int(self.steps[-1])
        newest = np.searchsorted(self.steps, np.arange(steps), side="right") - 1
        hours = (np.arange(steps) * self.step_s // HISTORY_S).astype(np.int64)
        exists = (series.end >= 0)[newest]
        ends = grown_ends(series)
        arrivals = self._arrivals(ends, np.random.default_rng(_SEED))
        waits = np.where(series.end[0] >= 0, series.lag[0], 0)
        members = len(self.roster.members)
        phases = np.random.default_rng(_SEED).uniform(0, self.roster.commit_s, members)
        return World(
            roster=self.roster,
            step_s=self.step_s,
            arrivals=arrivals,
            speeds=self.speeds[np.minimum(hours, len(self.speeds) - 1)],
            exists=exists,
            present=self.present[newest],
            phases=phases,
            first=ends[0],
            waiting=waits.astype(np.float64),
        )

    def _arrivals(self, ends: Int64, rng: np.random.Generator) -> Int64:
        """Return arrivals per step, spread randomly between samples, int64 of shape (steps, P)."""
        arrivals = np.zeros((int(self.steps[-1]), ends.shape[1]), np.int64)
        for row in range(1, len(ends)):
            first, last = int(self.steps[row - 1]), int(self.steps[row])
            each = np.full(last - first, 1 / (last - first))
            arrivals[first:last] = rng.multinomial(ends[row] - ends[row - 1], each).T
        return arrivals

    @cached_property
    def speeds(self) -> Float64:
        """Speed of each member in each hour, records per second, float64 of shape (hours, M)."""
        return hourly_speeds(self.series)


def replayable(samples: pa.Table) -> tuple[pa.Table, list[tuple[datetime, str]]]:
    """Divide samples into those to replay and those that cannot be replayed.

    Parameters
    ----------
    samples
        One group's samples, by time, of the schema `fairlead.domain.samples.SAMPLES`.

    Returns
    -------
    samples, skipped
        `skipped`: time and reason of each sample that has an error, or in which no member reads a
        partition. `samples`: all other samples. Of samples that are closer together than one step
        of the replay, only the last is kept.
    """
    rows = samples.select(["at", "error", "topics", "subscriptions"]).to_pylist()
    reasons = [row["error"] or _unread(row) for row in rows]
    skipped = [(row["at"], why) for row, why in zip(rows, reasons, strict=True) if why]
    usable = samples.filter(pa.array([why is None for why in reasons], pa.bool_()))
    return usable.take(pa.array(_a_step_apart(usable["at"].to_pylist()), pa.int64())), skipped


def _a_step_apart(at: Sequence[datetime]) -> list[int]:
    """Return the ascending indices of moments that are at least a step of the replay apart.

    Moments are chosen from the last one backwards.

    Examples
    --------
    >>> from datetime import UTC
    >>> _a_step_apart([datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC) for second in (0, 30, 32)])
    [0, 2]
    """
    if not at:
        return []
    step_s = _step_s((at[-1] - at[0]).total_seconds())
    chosen = [len(at) - 1]
    for place in reversed(range(len(at) - 1)):
        if (at[chosen[-1]] - at[place]).total_seconds() >= step_s:
            chosen.append(place)
    return chosen[::-1]


def _step_s(whole_s: float) -> float:
    """Return the length of a step, in seconds, for a replay of `whole_s` seconds."""
    return max(float(np.ceil(whole_s / (_MOST_STEPS * _STEP_S))), 1.0) * _STEP_S


def _unread(row: Mapping[str, Any]) -> str | None:
    read = {topic for topics in row["subscriptions"] for topic in topics}
    return None if read & set(row["topics"]) else "no member reads a partition"


def _unread_partitions(rows: Sequence[Mapping[str, Any]], roster: Roster) -> Mask:
    """Return, for each sample, to which partitions no member subscribes; bool of shape (L, P).

    These partitions may have commits: Kafka keeps commits for days after a group has left a topic.
    """
    read = [{topic for topics in row["subscriptions"] for topic in topics} for row in rows]
    unread = np.array([[topic not in topics for topic in roster.topics] for topics in read])
    return np.repeat(unread, roster.counts, axis=1)


def _roster(rows: Sequence[Mapping[str, Any]]) -> Roster:
    """Return all members, and all topics that they subscribed to, in any of the samples."""
    read: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for row in rows:
        for name, topics in zip(row["members"], row["subscriptions"], strict=True):
            read.setdefault(name, set()).update(topics)
        for topic, count in zip(row["topics"], row["counts"], strict=True):
            counts[topic] = max(counts.get(topic, 0), count)
    names = sorted(read, key=kafka_order)
    topics = sorted(set().union(*read.values()) & counts.keys(), key=kafka_order)
    return Roster(
        members=tuple(names),
        topics=tuple(topics),
        counts=tuple(counts[topic] for topic in topics),
        subscribed=np.array([[topic in read[name] for topic in topics] for name in names]),
    )
