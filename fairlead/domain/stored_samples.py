"""Samples of a group in Postgres, and the group's history as arrays.

Belongs here: which samples are stored, and what is computed from many samples. Belongs elsewhere:
writing and reading samples (`fairlead.store.group_history`), drawing them
(`fairlead.surfaces.plots`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from assignors.problem import kafka_order
from fairlead.domain.analysis.sample_series import Float64, Int32, Mask
from fairlead.domain.history import THINNED_TO

#: Shown in place of an owner if a partition has none.
NOBODY: Final = "nobody"


class LastStored(NamedTuple):
    """The newest stored sample of a group: its time, its digest, and whether it has a forecast."""

    at: datetime
    digest: int
    known: bool


def digest_of(
    topics: Sequence[str], counts: Sequence[int], members: Sequence[str], owner: Sequence[int]
) -> int:
    """Return a signed 8-byte hash of partitions, members and owners, to detect changes."""
    text = repr([list(part) for part in (topics, counts, members, owner)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredSample:
    """A sample of a group of P partitions, as it is stored.

    Parameters
    ----------
    at
        Time of the sample; time-zone-aware.
    digest
        Hash of the sample's partitions, members and owners, from `digest_of`.
    forecast_time_lag_s, utilisation
        The forecast; None if too little is known.
    group_type, protocol
        As Kafka returns them: `classic` or `consumer`, and the assignor's name.
    topics, counts
        Topics and their numbers of partitions. The lists below have the partitions in this order.
    members
        Names of the members.
    owner
        Index into `members` for each partition; -1: no owner.
    lag, arrival_rate, behind_s, capacity_share
        For each partition: lag in records; records written a second; age of the next record to be
        read, in seconds; arrivals as a share of the owner's capacity. NaN: not known.
    """

    at: datetime
    digest: int
    forecast_time_lag_s: float | None
    utilisation: float | None
    group_type: str
    protocol: str
    topics: Sequence[str]
    counts: Sequence[int]
    members: Sequence[str]
    owner: Sequence[int]
    lag: Sequence[float]
    arrival_rate: Sequence[float]
    behind_s: Sequence[float]
    capacity_share: Sequence[float]

    def is_news(self, last: LastStored | None) -> bool:
        """Return whether the sample is to be stored in the group's history.

        It is stored if it is the first in a quarter of an hour, if it has a forecast and `last` has
        none, or if it differs from `last` in partitions, owners or members.
        """
        interval_s = THINNED_TO.total_seconds()
        return (
            last is None
            or last.digest != self.digest
            or (self.forecast_time_lag_s is not None and not last.known)
            or last.at.timestamp() // interval_s != self.at.timestamp() // interval_s
        )


@dataclass(frozen=True)
class Change:
    """Changes of owners and members from one sample to the next.

    Parameters
    ----------
    at
        Time of the later sample.
    moved
        For each moved partition: its name, its owner before, and its owner after.
    came, left
        Members that only the later sample has, and members that only the earlier sample has.
    """

    at: datetime
    moved: tuple[tuple[str, str, str], ...]
    came: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class GroupHistory:
    """L samples of a group, with all P partitions and M members that occur in them.

    Parameters
    ----------
    at
        Times of the samples, ascending.
    partitions, members
        Names; the name of a partition is "topic-number".
    owner
        int32 of shape (L, P); -1: no owner.
    present
        Whether each sample has each member, bool of shape (L, M).
    lag, arrival_rate, behind_s, capacity_share
        As in `StoredSample`, float64 of shape (L, P). NaN if the sample does not have the
        partition. If the sample has no forecast, only `lag` is known.

    Examples
    --------
    >>> from datetime import UTC
    >>> def sample(day, owner, members):
    ...     return StoredSample(at=datetime(2026, 1, day, tzinfo=UTC), digest=0,
    ...         forecast_time_lag_s=0, utilisation=1, group_type="classic", protocol="range",
    ...         topics=["t"], counts=[2], members=members, owner=owner, lag=[5, 4],
    ...         arrival_rate=[1, 2], behind_s=[3, 9], capacity_share=[0.5, 0])
    >>> history = GroupHistory.of([sample(1, [0, 0], ["a"]), sample(2, [0, 1], ["a", "b"])])
    >>> (change,) = history.changes()
    >>> change.moved, change.came, change.left
    ((('t-1', 'a', 'b'),), ('b',), ())
    >>> history.by_owner(history.lag).tolist()
    [[9.0, nan], [5.0, 4.0]]
    """

    at: tuple[datetime, ...]
    partitions: tuple[str, ...]
    members: tuple[str, ...]
    owner: Int32
    present: Mask
    lag: Float64
    arrival_rate: Float64
    behind_s: Float64
    capacity_share: Float64

    @classmethod
    def of(cls, samples: Sequence[StoredSample]) -> "GroupHistory":
        """Return the history of a group from its samples, which are in order of time."""
        counts: dict[str, int] = {}
        for sample in samples:
            for topic, count in zip(sample.topics, sample.counts, strict=True):
                counts[topic] = max(counts.get(topic, 0), count)
        topics = sorted(counts, key=kafka_order)
        starts = dict(zip(topics, np.cumsum([0, *(counts[name] for name in topics)]), strict=False))
        members = sorted({name for each in samples for name in each.members}, key=kafka_order)
        place = {name: index for index, name in enumerate(members)}
        shape, by_member = (len(samples), sum(counts.values())), (len(samples), len(members))
        owner, present = np.full(shape, -1, np.int32), np.zeros(by_member, np.bool_)
        lag, *others = (np.full(shape, np.nan) for _ in range(4))
        for row, sample in enumerate(samples):
            parts = [
                np.arange(starts[topic], starts[topic] + count)
                for topic, count in zip(sample.topics, sample.counts, strict=True)
            ]
            places = np.concatenate([np.empty(0, np.int64), *parts])
            mine = np.array([place[name] for name in sample.members], np.int32)
            owner[row, places] = np.append(mine, np.int32(-1))[np.array(sample.owner, np.int64)]
            lag[row, places] = sample.lag
            if sample.forecast_time_lag_s is not None:
                known = sample.arrival_rate, sample.behind_s, sample.capacity_share
                for array, values in zip(others, known, strict=True):
                    array[row, places] = values
            present[row, mine] = True
        names = tuple(f"{topic}-{number}" for topic in topics for number in range(counts[topic]))
        at = tuple(sample.at for sample in samples)
        return cls(at, names, tuple(members), owner, present, lag, *others)

    def by_owner(self, values: Float64, *, worst: bool = False) -> Float64:
        """Return the sum of each member's values or, if `worst`, their maximum, of shape (L, M).

        NaN if a sample does not have the member, or has no values at all.
        """
        result = np.zeros(self.present.shape)
        sample, partition = np.nonzero((self.owner >= 0) & ~np.isnan(values))
        place = sample, self.owner[sample, partition]
        (np.maximum if worst else np.add).at(result, place, values[sample, partition])
        result[~self.present] = np.nan
        result[np.isnan(values).all(axis=1)] = np.nan
        return result

    def owner_name(self, sample: int, partition: int) -> str:
        """Return the owner of a partition in a sample, or `NOBODY`."""
        owner = int(self.owner[sample, partition])
        return NOBODY if owner < 0 else self.members[owner]

    def changes(self) -> list[Change]:
        """Return changes of owners and members, newest first."""
        moved = self.owner[1:] != self.owner[:-1]
        other = self.present[1:] != self.present[:-1]

        def names(members: Mask) -> tuple[str, ...]:
            return tuple(self.members[index] for index in np.flatnonzero(members))

        return [
            Change(
                at=self.at[before + 1],
                moved=tuple(
                    (
                        self.partitions[index],
                        self.owner_name(before, index),
                        self.owner_name(before + 1, index),
                    )
                    for index in np.flatnonzero(moved[before]).tolist()
                ),
                came=names(other[before] & self.present[before + 1]),
                left=names(other[before] & self.present[before]),
            )
            for before in np.flatnonzero(moved.any(axis=1) | other.any(axis=1))[::-1].tolist()
        ]


def largest(names: Sequence[str], values: Float64, count: int) -> dict[str, list[float | None]]:
    """Return the values of the `count` names with the highest maximum, in the order of `names`.

    Parameters
    ----------
    values
        Values of K names, of shape (L, K). NaN: not known. The result has None instead.
    count
        Maximum number of names.

    Examples
    --------
    >>> largest(["a", "b"], np.array([[1.0, 5.0], [np.nan, 2.0]]), 1)
    {'b': [5.0, 2.0]}
    """
    peaks = np.where(np.isnan(values), -np.inf, values).max(axis=0, initial=-np.inf)
    known = np.flatnonzero(np.isfinite(peaks))
    picked = np.sort(known[np.argsort(-peaks[known], kind="stable")][:count])
    return {
        names[index]: [None if np.isnan(value) else value for value in values[:, index].tolist()]
        for index in picked.tolist()
    }
