"""A simulated consumer group that reads one topic: arrivals, consumption, commits, retention.

Belongs here: offsets, and what brokers would return for the group. Belongs elsewhere: decisions
about the group (`scenario`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fairlead.domain.groups import LiveGroup, LiveMember
from fairlead.domain.samples import SAMPLES, GroupSnapshot
from tests.samples import samples

MINUTE: Final = timedelta(minutes=1)
#: Seconds between the last commit and each sample: half of the auto-commit interval.
COMMIT_AGE_S: Final = 2.5


class SimulatedGroup:
    """A simulated group and its archive of samples.

    A member that cannot read all records reads an equal share of those that wait in each partition.

    Parameters
    ----------
    name
        Name of the group and of its topic.
    members
        Name of each member -> records of cost 1 that it can process per second.
    rates, costs
        For each partition: arriving records per second, and the cost of a record.
    since
        Start of the simulation, with a time zone.
    retention
        Age at which records are deleted, in whole minutes; None: records are never deleted.
    reports
        Whether the members report how long they process records, as plan followers do.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[str, float],
        *,
        rates: Sequence[float],
        costs: Sequence[float],
        since: datetime,
        retention: timedelta | None = None,
        reports: bool = False,
    ) -> None:
        self.name, self.now, self.rates, self._reports = name, since, rates, reports
        self._since = since
        self._members, self._speeds = tuple(members), np.array([*members.values()])
        self._costs = np.array(costs)
        self._retention = None if retention is None else retention // MINUTE
        self._owner = np.full(len(rates), -1)
        self._ends = [np.zeros(len(rates))]
        self._begin, self._read = np.zeros((2, len(rates)))
        self._rows: list[dict[str, Any]] = []
        #: Totals of (processed records, milliseconds spent) of each member in each partition.
        self._worked = np.zeros((2, len(members), len(rates)))
        self._uncommitted = np.zeros((2, len(rates)))

    def assign(self, owned: Mapping[str, Collection[int]]) -> None:
        """Assign partitions to members."""
        for name, partitions in owned.items():
            self._owner[list(partitions)] = self._members.index(name)

    def run(self, until: datetime) -> None:
        """Simulate until a time; take a sample each minute."""
        while self.now < until:
            self.now += MINUTE
            self._step()

    def _step(self) -> None:
        """Simulate a minute. If unread records were deleted, members go on at the log start."""
        before = self._read = np.maximum(self._read, self._begin)
        end = self._ends[-1] + 60 * np.array(self.rates)
        work = np.where(self._owner < 0, 0.0, (end - before) * self._costs)
        wanted = np.bincount(self._owner + 1, work, len(self._members) + 1)[1:]
        share = np.minimum(1.0, 60 * self._speeds / np.maximum(wanted, 1.0))
        consumed = np.where(self._owner < 0, 0.0, (end - before) * share[self._owner])
        self._read = before + consumed
        self._ends.append(end)
        if self._retention is not None and self.now.minute % 10 == 0:  # delete whole segments
            self._begin = self._ends[max(0, len(self._ends) - 1 - self._retention)]
        committed = self._read - consumed * COMMIT_AGE_S / 60
        owned = np.flatnonzero(self._owner >= 0)
        owner = self._owner[owned]
        done_ms = 1e3 * consumed * self._costs / self._speeds[self._owner]
        step = np.stack((consumed, done_ms))
        self._worked[:, owner, owned] += step[:, owned]
        self._uncommitted = step * COMMIT_AGE_S / 60
        self._rows.append(
            {
                "group": self.name,
                "sample_id": f"{self.now:%Y%m%dT%H%M}",
                "at": self.now,
                "protocol": "fairlead",
                "topics": [self.name],
                "counts": [len(end)],
                "begin": self._begin.astype(int).tolist(),
                "end": end.astype(int).tolist(),
                "committed": committed.astype(int).tolist(),
                "members": self._members,
                "generations": [1] * len(self._members),
                "owner": self._owner.tolist(),
                **(self._reported() if self._reports else {}),
            }
        )

    def _reported(self) -> dict[str, Any]:
        """Return the sample's columns with reported work.

        The standard deviation of the time per record is a fifth of the mean.
        """
        worked = self._worked[:, self._owner, np.arange(self._owner.size)] - self._uncommitted
        records, busy_ms = np.where(self._owner < 0, 0, worked)
        squares = 1.04 * busy_ms**2 / np.maximum(records, 1.0)
        elapsed_ms = 1000 * int((self.now - self._since).total_seconds())
        handler_ms = self._worked[1].sum(axis=1)
        members = len(self._members)
        return {
            "reporter": self._owner.tolist(),
            "report_records": records.astype(int).tolist(),
            "report_busy_ms": busy_ms.astype(int).tolist(),
            "report_squares_ms2": squares.astype(int).tolist(),
            "tokens": ["k3f9q2"] * members,
            "elapsed_ms": [elapsed_ms] * members,
            "waiting_ms": (elapsed_ms - handler_ms).astype(int).tolist(),
            "handler_ms": handler_ms.astype(int).tolist(),
            "calls": records.sum().astype(int).repeat(members).tolist(),
            "paused": [0] * members,
            "reported_at_ms": [1000 * int(self.now.timestamp())] * members,
        }

    def read(
        self,
        since: datetime,
        until: datetime,
        _groups: Iterable[str] = (),
        columns: Sequence[str] = SAMPLES.names,
    ) -> pa.Table:
        """Return the samples from `since` until before `until`, as the archive does."""
        rows = [row for row in self._rows if since <= row["at"] < until]
        return samples(*rows).select(list(columns))

    def newest(self, _groups: Iterable[str]) -> pa.Table:
        """Return no samples, so that the caller queries the brokers for everything."""
        return SAMPLES.empty_table()

    def snapshot(self, _groups: Iterable[str] = (), **_options: object) -> GroupSnapshot:
        """Return the last sample in the form of a snapshot."""
        last = self._rows[-1]
        return GroupSnapshot(last["sample_id"], last["at"], 0.0, samples(last))

    def live(self, _groups: Iterable[str]) -> dict[str, LiveGroup]:
        """Return the current state of the group."""
        counts = {self.name: len(self._owner)}
        now = LiveGroup(
            self.name, "Stable", "fairlead", self._live_members(), counts, observed_at=self.now
        )
        return {self.name: now}

    def _live_members(self) -> tuple[LiveMember, ...]:
        return tuple(
            LiveMember(
                member_id=f"{name}-id",
                client_id=name,
                instance_id=None,
                name=name,
                topics=(self.name,),
                partitions={self.name: tuple(np.flatnonzero(self._owner == number).tolist())},
                generation=1,
            )
            for number, name in enumerate(self._members)
        )
