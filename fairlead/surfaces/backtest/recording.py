"""A recorded group as a world that can be lived through again: what arrived, and who was there.

Belongs here: from snapshots to arrays. Does not: how fast members were (`speeds`), reading
snapshots (`spark`), nor deciding about the world (`replay`). Pure.

Arrivals do not depend on who reads them, so they are those that were recorded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Final

import numpy as np

from assignors.problem import kafka_order
from fairlead.domain.judgement.commits import read_commits
from fairlead.domain.judgement.looks import NONE, Looks
from fairlead.domain.judgement.seeing import HISTORY_S, LEAST_LOOKS
from fairlead.simulation.world import Float64, Int64, Mask, Roster, World
from fairlead.surfaces.backtest.speeds import RecordedSpeeds, grown_ends

#: A replay takes so many steps at most, each a multiple of `_STEP_S`.
_MOST_STEPS: Final = 20_000
_STEP_S: Final = 10.0
#: Commits that come in nearly every step between snapshots may come at any rate.
_SEEN: Final = 2.0
#: Clients' default.
_AUTO_COMMIT_S: Final = 5.0


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A group at one moment.

    Parameters
    ----------
    at
        When; time-zone-aware.
    members
        Name to subscribed topics.
    owned
        Name to topic to the partitions it owned.
    begin, end, committed
        Topic to one offset a partition, int64; -1: not known, or not committed.
    statuses
        Those that its partitions had.
    """

    at: datetime
    members: Mapping[str, Sequence[str]]
    owned: Mapping[str, Mapping[str, Sequence[int]]]
    begin: Mapping[str, Int64]
    end: Mapping[str, Int64]
    committed: Mapping[str, Int64]
    statuses: frozenset[str] = frozenset({"OK"})


@dataclass(frozen=True, eq=False)
class Recording:
    """L snapshots of M members and P partitions in all.

    Parameters
    ----------
    start
        When the first snapshot was taken.
    roster
        Everybody and everything that was ever there.
    looks
        What was seen, over all partitions; member numbers are the roster's.
    present
        Who was there, bool of shape (L, M).
    statuses
        Of each snapshot.
    """

    start: datetime
    roster: Roster
    looks: Looks
    present: Mask
    statuses: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], *, latest: bool = False) -> "Recording":
        """Lay snapshots out over all partitions that ever were; two of them at least, in order.

        Parameters
        ----------
        snapshots
            Of one group.
        latest
            Whether consumers without a commit start at the log's end.
        """
        roster = _roster(snapshots)
        looks = _looks(snapshots, roster, latest=latest)
        commit_s = read_commits(looks.last(HISTORY_S, LEAST_LOOKS)).usual_interval_s
        if commit_s <= _SEEN * looks.step:  # as often as anybody looked: more often, likely
            commit_s = _AUTO_COMMIT_S
        present = np.array(
            [[name in snapshot.members for name in roster.members] for snapshot in snapshots]
        )
        statuses = tuple(snapshot.statuses for snapshot in snapshots)
        return cls(
            snapshots[0].at,
            replace(roster, commit_s=min(commit_s, HISTORY_S)),
            looks,
            present,
            statuses,
        )

    @cached_property
    def seconds(self) -> Float64:
        """When each snapshot was taken, seconds from the first, shape (L,)."""
        seconds: Float64 = self.looks.at - self.looks.at[0]
        return seconds

    @cached_property
    def step_s(self) -> float:
        """Seconds a step of the replay."""
        fewest = self.seconds[-1] / (_MOST_STEPS * _STEP_S)
        return max(float(np.ceil(fewest)), 1.0) * _STEP_S

    @cached_property
    def steps(self) -> Int64:
        """Step at the start of which each snapshot was taken, int64 of shape (L,)."""
        steps: Int64 = np.rint(self.seconds / self.step_s).astype(np.int64)
        return steps

    @cached_property
    def lags(self) -> Float64:
        """How long ago each log ended where it was committed, seconds, float64 of shape (L, P)."""
        ends, lag = grown_ends(self.looks).astype(np.float64), self.looks.lag
        behind = np.zeros(ends.shape)
        for partition in np.flatnonzero(lag.any(axis=0)).tolist():
            stands = ends[:, partition] - lag[:, partition]
            behind[:, partition] = self.seconds - np.interp(
                stands, ends[:, partition], self.seconds
            )
        late: Float64 = np.where(lag > 0, behind, 0.0)
        return late

    def latest(self, step: int) -> int:
        """Return the number of the newest snapshot at the start of a step."""
        return int(np.searchsorted(self.steps, step, side="right")) - 1

    def world(self, seed: int = 0) -> World:
        """Return the world in which all this was seen.

        Records that arrived between two snapshots come in a random step of these.
        """
        looks, steps = self.looks, int(self.steps[-1])
        newest = np.searchsorted(self.steps, np.arange(steps), side="right") - 1
        exists = (looks.end >= 0)[newest]
        ends = grown_ends(looks)
        arrivals = self._arrivals(ends, np.random.default_rng(seed))
        waits = np.where(looks.end[0] >= 0, looks.lag[0], 0)
        members = len(self.roster.members)
        phases = np.random.default_rng(seed).uniform(0, self.roster.commit_s, members)
        return World(
            roster=self.roster,
            step_s=self.step_s,
            arrivals=arrivals,
            speeds=self.speeds.per_s[
                self.speeds.hour_of(np.arange(steps, dtype=np.float64) * self.step_s)
            ],
            exists=exists,
            present=self.present[newest],
            phases=phases,
            first=ends[0],
            waiting=waits.astype(np.float64),
        )

    def _arrivals(self, ends: Int64, rng: np.random.Generator) -> Int64:
        """Scatter what came between snapshots over the steps between, int64 of shape (N, P)."""
        arrivals = np.zeros((int(self.steps[-1]), ends.shape[1]), np.int64)
        since = 0
        for row in range(1, len(ends)):
            first, last = int(self.steps[row - 1]), int(self.steps[row])
            if first == last:
                continue  # two snapshots in one step: the next interval has it all
            came = ends[row] - ends[since]
            each = np.full(last - first, 1 / (last - first))
            arrivals[first:last] = rng.multinomial(came, each).T
            since = row
        return arrivals

    @cached_property
    def speeds(self) -> RecordedSpeeds:
        """How fast members were."""
        return RecordedSpeeds.of(self.looks)


def _roster(snapshots: Sequence[Snapshot]) -> Roster:
    """Gather everybody and everything that was ever there."""
    names = sorted({name for snapshot in snapshots for name in snapshot.members}, key=kafka_order)
    read: dict[str, set[str]] = {name: set() for name in names}
    counts: dict[str, int] = {}
    for snapshot in snapshots:
        for name, topics in snapshot.members.items():
            read[name].update(topics)
        for topic, ends in snapshot.end.items():
            counts[topic] = max(counts.get(topic, 0), ends.size)
    topics = sorted(set().union(*read.values()) & counts.keys(), key=kafka_order)
    return Roster(
        members=tuple(names),
        topics=tuple(topics),
        counts=tuple(counts[topic] for topic in topics),
        subscribed=np.array([[topic in read[name] for topic in topics] for name in names]),
    )


def _looks(snapshots: Sequence[Snapshot], roster: Roster, *, latest: bool) -> Looks:
    """Lay snapshots out over the partitions and members of a roster."""
    starts = np.cumsum((0, *roster.counts))
    first = dict(zip(roster.topics, starts.tolist(), strict=False))
    member = {name: number for number, name in enumerate(roster.members)}
    shape = len(snapshots), int(starts[-1])
    begin, end, committed = (np.full(shape, NONE, np.int64) for _ in range(3))
    owner = np.full(shape, -1, np.int32)
    for row, snapshot in enumerate(snapshots):
        for values, known in (
            (begin, snapshot.begin),
            (end, snapshot.end),
            (committed, snapshot.committed),
        ):
            for topic in known.keys() & first.keys():
                values[row, first[topic] : first[topic] + known[topic].size] = known[topic]
        for name, owned in snapshot.owned.items():
            for topic in owned.keys() & first.keys():
                owner[row, first[topic] + np.array(owned[topic], np.int64)] = member[name]
    owner[end < 0] = -1
    return Looks(
        at=np.array([snapshot.at.timestamp() for snapshot in snapshots]),
        begin=begin,
        end=end,
        committed=committed,
        members=roster.members,
        owner=owner,
        latest=latest,
    )
