"""Reports of work that simulated consumers commit and that samples contain.

This module computes the reports of each commit, and adds flaws to them. `metering` has the
counters, and `fairlead.simulation.commits` decides when consumers commit.

As with real plan followers, each consumer has its own counters for each partition. They start at 0
when the consumer starts. The previous owner's report remains until the new owner commits, and some
clients commit only if the offset has advanced.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.simulation.metering import Meters
from benchmarks.simulation.reading import ScenarioReading
from fairlead.domain.analysis.reported_work import ReportSeries
from fairlead.domain.analysis.sample_series import NONE
from fairlead.simulation.world import Float64, Int32, Int64, Mask

_OF_PARTITION: Final = ("records", "busy_s", "squares_s2")
_OF_CONSUMER: Final = ("elapsed_s", "waiting_s", "handler_s", "calls", "paused")
#: Clients that commit an offset only if it has advanced.
_ONLY_ADVANCED: Final = frozenset({"confluent-kafka", "proportional"})


@dataclass(eq=False)
class _Stored:
    """The newest committed report of each of P partitions.

    `by` is the consumer that committed the report, or -1 if there is no report.
    """

    by: Int32
    token: Int64
    values: dict[str, Float64]

    @classmethod
    def none(cls, partitions: int) -> "_Stored":
        return cls(
            np.full(partitions, NONE, np.int32),
            np.full(partitions, NONE, np.int64),
            {name: np.full(partitions, np.nan) for name in (*_OF_PARTITION, *_OF_CONSUMER)},
        )

    def with_(self, other: "_Stored", where: Mask) -> "_Stored":
        """Return a copy with the reports of `other` for the partitions in `where`."""
        return _Stored(
            np.where(where, other.by, self.by),
            np.where(where, other.token, self.token),
            {name: np.where(where, other.values[name], its) for name, its in self.values.items()},
        )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Reports in a sample: values of each partition and of each consumer.

    Arrays of consumers have an additional last element, NaN. Partitions without a report refer to
    this element: their `by` is -1.
    """

    by: Int32
    of_partition: dict[str, Float64]
    token: Int64
    of_consumer: dict[str, Float64]

    @classmethod
    def of(cls, found: _Stored, members: int) -> "_Sample":
        """Make a sample. The values of a consumer are those of its newest report."""
        order = np.argsort(found.values["elapsed_s"], kind="stable")
        order = order[found.by[order] >= 0]
        token = np.full(members + 1, NONE, np.int64)
        token[found.by[order]] = found.token[order]
        of_consumer = {name: np.full(members + 1, np.nan) for name in _OF_CONSUMER}
        for name, column in of_consumer.items():
            column[found.by[order]] = found.values[name][order]
        return cls(
            found.by, {name: found.values[name] for name in _OF_PARTITION}, token, of_consumer
        )


class SimulatedReports:
    """The reports of one group.

    Parameters
    ----------
    reading
        The simulated reading of P partitions by M members.
    """

    def __init__(self, reading: ScenarioReading) -> None:
        world = reading.world
        self._reading, self._world, self._habit = reading, world, world.scenario.reports
        self._meters = Meters(reading)
        self._rng = np.random.default_rng((self._habit.seed, 3))
        members, partitions = world.speeds.shape[1], world.partitions
        drawn = np.random.default_rng((self._habit.seed, 4)).random(members)
        self._silent: Mask = np.less(drawn, self._habit.silent)
        self._only_advanced = world.scenario.client in _ONLY_ADVANCED
        #: Number of steps that the counters include, and the owners in the last of these steps.
        self._done = 0
        self._owner: Int32 = np.full(partitions, -1, np.int32)
        #: For each consumer: token (a new one at each start), time of its last start, and the
        #: totals of `Meters` at that time: seconds of waiting, and number of polls.
        self._token: Int64 = np.full(members, NONE, np.int64)
        self._since_s, self._waited_s, self._called = np.zeros((3, members))
        self._tokens = 0
        #: For each partition, what to subtract from the totals of all owners to get the counters of
        #: the present owner.
        self._offset = {name: np.zeros(partitions) for name in _OF_PARTITION}
        #: Counters for partitions that consumers gave up. Keys are (token, partition).
        self._given_up: dict[tuple[int, int], tuple[float, ...]] = {}
        #: For each partition, maximum number of unprocessed records that its application held.
        self._ahead: Float64 = np.zeros(partitions)
        self._stored = self._last = _Stored.none(partitions)
        self._samples: dict[float, _Sample] = {}

    def committed(
        self, step: int, partitions: Mask, given: Int64, moment: Float64, before: Int64
    ) -> None:
        """Store the reports that consumers commit with offsets.

        Parameters
        ----------
        step
            The present step.
        partitions
            Whether each partition is committed.
        given, moment
            For each partition, the committed offset, and the time of the commit in seconds from the
            start.
        before
            The previously committed offsets, int64 of shape (P,).
        """
        self._count(step, before)
        owner = self._owner
        writes = partitions & (owner >= 0) & (self._token[owner] >= 0)
        writes &= (given > before) if self._only_advanced else (given >= before)
        elapsed = moment - self._since_s[owner]
        writes &= elapsed > 0
        self._stored.by[writes & self._silent[owner]] = NONE
        writes &= ~self._silent[owner]
        if not writes.any():
            return
        at = moment / self._world.step_s
        waiting = self._between(self._meters.waiting_s, at, owner) - self._waited_s[owner]
        report = _Stored(
            owner.copy(),
            self._token[owner],
            {
                **self._counters(at, given),
                "elapsed_s": _rounded(elapsed, 3),
                "waiting_s": _rounded(waiting, 3),
                "handler_s": _rounded(elapsed - waiting, 3),
                "calls": np.floor(self._between(self._meters.calls, at, owner))
                - self._called[owner],
                "paused": self._meters.paused[owner],
            },
        )
        self._stored = self._stored.with_(report, writes)

    def sample(self, step: int, oldest_s: float) -> None:
        """Store a sample of the reports at the start of a step; drop samples before `oldest_s`."""
        rng, habit, found = self._rng, self._habit, self._stored
        size = found.by.size
        if habit.stale:
            found = found.with_(self._last, rng.random(size) < habit.stale)
        self._last = found
        # A sample omits reports of consumers that have left or restarted, because their member ids
        # are no longer in the group.
        gone = ~self._world.present[step][found.by] | (found.token != self._token[found.by])
        if habit.missing:
            gone |= rng.random(size) < habit.missing
        found = found.with_(_Stored.none(size), gone)
        if habit.impossible:
            self._spoil(found, rng.random(size) < habit.impossible)
        self._samples = {when: its for when, its in self._samples.items() if when >= oldest_s}
        self._samples[step * self._world.step_s] = _Sample.of(found, self._token.size)

    def series(
        self, at_s: Float64, partitions: Int64, members: tuple[str, ...]
    ) -> ReportSeries | None:
        """Return the sampled reports in the form that the analysis reads.

        Parameters
        ----------
        at_s
            Times of the samples, seconds from the start.
        partitions, members
            The partitions and members that are the columns of the result.
        """
        samples = [self._samples[at] for at in at_s.tolist()]
        by = np.stack([its.by for its in samples])[:, partitions]
        if (by < 0).all():
            return None
        names = {name: place for place, name in enumerate(self._world.roster.members)}
        chosen = np.array([names[name] for name in members])
        number = np.full(self._token.size + 1, NONE, np.int32)
        number[chosen] = np.arange(chosen.size)
        return ReportSeries(
            by=number[by],
            token=np.stack([its.token for its in samples])[:, chosen],
            **{
                name: np.stack([its.of_partition[name] for its in samples])[:, partitions]
                for name in _OF_PARTITION
            },
            **{
                name: np.stack([its.of_consumer[name] for its in samples])[:, chosen]
                for name in _OF_CONSUMER
                if name != "calls"
            },
        )

    def _count(self, step: int, committed: Int64) -> None:
        """Advance the counters to a step, after registering new consumers and new owners."""
        reading, done = self._reading, self._done
        present = self._world.present[min(done, self._world.steps - 1)]
        if not np.array_equal(self._owner, reading.owner) or (present != (self._token >= 0)).any():
            self._take_over(done, committed, present)
        self._meters.count(done, step)
        held = reading.held_ahead(done, step)
        if held is not None:
            self._ahead = np.maximum(self._ahead, held)
        self._done = step

    def _take_over(self, step: int, committed: Int64, present: Mask) -> None:
        meters, new = self._meters, self._reading.owner
        totals = (committed.astype(np.float64), meters.busy_s[step], meters.squares_s2[step])
        now = dict(zip(_OF_PARTITION, totals, strict=True))
        went = np.flatnonzero(self._owner != new).tolist()
        for partition in went:
            if self._owner[partition] >= 0:
                key = int(self._token[self._owner[partition]]), partition
                self._given_up[key] = tuple(
                    float(now[name][partition] - its[partition])
                    for name, its in self._offset.items()
                )
        self._token[~present] = NONE
        came = np.flatnonzero(present & (self._token < 0))
        self._token[came] = self._tokens + np.arange(came.size)
        self._tokens += came.size
        self._since_s[came] = step * self._world.step_s
        self._waited_s[came], self._called[came] = (
            meters.waiting_s[step, came],
            meters.calls[step, came],
        )
        for partition in went:
            token = int(self._token[new[partition]]) if new[partition] >= 0 else NONE
            kept = self._given_up.get((token, partition), (0.0, 0.0, 0.0))
            for (name, its), value in zip(self._offset.items(), kept, strict=True):
                its[partition] = now[name][partition] - value
        self._ahead[went] = 0.0
        self._owner = new.copy()

    def _counters(self, at: Float64, given: Int64) -> dict[str, Float64]:
        """Return the counters of each partition's owner at the time of the partition's commit.

        `at` has these times, in steps; they may be fractional. If the committed offset (`given`) is
        beyond the processed records, the counters are those of an earlier offset, as in
        `fairlead.followers.core.progress`.
        """
        each = np.arange(at.size)
        busy_s = self._between(self._meters.busy_s, at, each) - self._offset["busy_s"]
        squares_s2 = self._between(self._meters.squares_s2, at, each) - self._offset["squares_s2"]
        records = given - self._offset["records"]
        if self._reading.ahead:
            processed = self._reading.processed(at) - self._offset["records"]
            records = np.minimum(records - self._ahead, np.floor(processed))
            mine = (self._stored.by == self._owner) & (
                self._stored.token == self._token[self._owner]
            )
            old = {name: np.where(mine, self._stored.values[name], 0.0) for name in _OF_PARTITION}
            records = np.maximum(records, old["records"])
            share = (records - old["records"]) / np.maximum(processed - old["records"], 1e-9)
            share = np.clip(share, 0.0, 1.0)
            busy_s = old["busy_s"] + share * np.maximum(busy_s - old["busy_s"], 0.0)
            squares_s2 = old["squares_s2"] + share * np.maximum(squares_s2 - old["squares_s2"], 0.0)
        if self._habit.application == "tasks":
            records, busy_s, squares_s2 = (np.zeros_like(busy_s) for _ in range(3))
        return {
            "records": records,
            "busy_s": _rounded(busy_s, 3),
            "squares_s2": _rounded(squares_s2, 6),
        }

    def _between(self, table: Float64, at: Float64, column: Int64 | Int32) -> Float64:
        """Interpolate columns of a table with one row per step. `at` has a time for each column."""
        before = np.minimum(np.floor(at).astype(np.int64), self._done)
        after = np.minimum(before + 1, self._done)
        first = table[before, column]
        found: Float64 = first + (at - before) * (table[after, column] - first)
        return found

    def _spoil(self, found: _Stored, where: Mask) -> None:
        """Change some reports to impossible values, in place."""
        kind = np.where(where, self._rng.integers(6, size=where.size), NONE)
        values = found.values
        values["records"][kind == 0] *= 10
        values["records"][kind == 1] = -5.0
        values["busy_s"][kind == 2] += 1e4
        values["busy_s"][kind == 3] = np.nan
        values["squares_s2"][kind == 4] = 0.0
        values["elapsed_s"][kind == 5] *= 2


def _rounded(values: Float64, digits: int) -> Float64:
    """Return seconds rounded to milliseconds, or squared seconds to squared milliseconds."""
    rounded: Float64 = np.maximum(values, 0.0).round(digits)
    return rounded
