"""How a group went, look by look: who owned what, how much lay there, who came and who left.

Belongs here: what is kept of a look, and pure functions over many. Does not: storing and reading
them (`fairlead.store.group_history`), drawing them (`fairlead.surfaces.plots`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from assignors.problem import kafka_order
from fairlead.domain.analysis.looks import Float64, Int32, Mask
from fairlead.domain.looks import KEPT_EVERY

#: What nobody owns is under this name.
NOBODY: Final = "nobody"


class Last(NamedTuple):
    """The newest look that is kept of a group: when, its `digest_of`, and whether it forecast."""

    at: datetime
    digest: int
    known: bool


def digest_of(
    topics: Sequence[str], counts: Sequence[int], members: Sequence[str], owner: Sequence[int]
) -> int:
    """Return what differs where others own something, or others are there: 8 bytes, with a sign."""
    text = repr([list(part) for part in (topics, counts, members, owner)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


def is_kept(at: datetime, digest: int, last: Last | None, *, known: bool) -> bool:
    """Whether a look is kept: the first of its interval, and where owners or members are others.

    So is the first that knows enough for a forecast after others that did not.

    Examples
    --------
    >>> from datetime import UTC
    >>> noon, later = (datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in (0, 14))
    >>> last = Last(noon, 7, known=True)
    >>> [is_kept(later, digest, last, known=True) for digest in (7, 8)]
    [False, True]
    >>> is_kept(noon, 7, None, known=False), is_kept(later, 7, Last(noon, 7, False), known=True)
    (True, True)
    """
    interval_s = KEPT_EVERY.total_seconds()
    return (
        last is None
        or last.digest != digest
        or (known and not last.known)
        or last.at.timestamp() // interval_s != at.timestamp() // interval_s
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Kept:
    """What is kept of a look at a group: P partitions, M members.

    Parameters
    ----------
    at
        When it was taken; time-zone-aware.
    digest
        Its `digest_of`.
    late_s, utilisation
        The forecast; None where too little is known for one.
    group_type, protocol
        As Kafka tells: `classic` or `consumer`, and the assignor's name.
    topics, counts
        Whose partitions stand one behind the other.
    members
        Who was there.
    owner
        Index into `members` for each partition; -1: nobody.
    lag, arrival_rate, behind_s, capacity_share
        Of each partition: records behind; records written a second; how long ago the next record
        was written, in seconds; and the share of its owner's capacity that the arriving records
        take, NaN if it is not known.
    """

    at: datetime
    digest: int
    late_s: float | None
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


@dataclass(frozen=True)
class Change:
    """What changed between a look and the one before it.

    Parameters
    ----------
    at
        When the look was taken: each that sees a change is kept.
    moved
        Partition, owner before, owner after.
    came, left
        Members that were there at one of the two alone.
    """

    at: datetime
    moved: tuple[tuple[str, str, str], ...]
    came: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Course:
    """L looks at a group, over the P partitions and M members that were there at any of them.

    Parameters
    ----------
    at
        When they were taken, ascending.
    partitions, members
        Names; a partition's is "topic-number".
    owner
        int32 of shape (L, P); -1: nobody.
    present
        Which members were there, bool of shape (L, M).
    lag, arrival_rate, behind_s, capacity_share
        As in `Kept`, float64 of shape (L, P); NaN where the partition was not there, and but for
        `lag` where too little was known for a forecast.

    Examples
    --------
    >>> from datetime import UTC
    >>> def look(day, owner, members):
    ...     return Kept(at=datetime(2026, 1, day, tzinfo=UTC), digest=0, late_s=0, utilisation=1,
    ...         group_type="classic", protocol="range", topics=["t"], counts=[2], members=members,
    ...         owner=owner, lag=[5, 4], arrival_rate=[1, 2], behind_s=[3, 9],
    ...         capacity_share=[0.5, 0])
    >>> course = Course.of([look(1, [0, 0], ["a"]), look(2, [0, 1], ["a", "b"])])
    >>> (change,) = course.changes()
    >>> change.moved, change.came, change.left
    ((('t-1', 'a', 'b'),), ('b',), ())
    >>> course.by_owner(course.lag).tolist()
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
    def of(cls, looks: Sequence[Kept]) -> "Course":
        """Lay looks out; they are by time."""
        counts: dict[str, int] = {}
        for look in looks:
            for topic, count in zip(look.topics, look.counts, strict=True):
                counts[topic] = max(counts.get(topic, 0), count)
        topics = sorted(counts, key=kafka_order)
        starts = dict(zip(topics, np.cumsum([0, *(counts[name] for name in topics)]), strict=False))
        members = sorted({name for look in looks for name in look.members}, key=kafka_order)
        place = {name: index for index, name in enumerate(members)}
        shape, by_member = (len(looks), sum(counts.values())), (len(looks), len(members))
        owner, present = np.full(shape, -1, np.int32), np.zeros(by_member, np.bool_)
        lag, *others = (np.full(shape, np.nan) for _ in range(4))
        for row, look in enumerate(looks):
            parts = [
                np.arange(starts[topic], starts[topic] + count)
                for topic, count in zip(look.topics, look.counts, strict=True)
            ]
            places = np.concatenate([np.empty(0, np.int64), *parts])
            mine = np.array([place[name] for name in look.members], np.int32)
            owner[row, places] = np.append(mine, np.int32(-1))[np.array(look.owner, np.int64)]
            lag[row, places] = look.lag
            if look.late_s is not None:
                known = look.arrival_rate, look.behind_s, look.capacity_share
                for found, values in zip(others, known, strict=True):
                    found[row, places] = values
            present[row, mine] = True
        names = tuple(f"{topic}-{number}" for topic in topics for number in range(counts[topic]))
        at = tuple(look.at for look in looks)
        return cls(at, names, tuple(members), owner, present, lag, *others)

    def by_owner(self, values: Float64, *, worst: bool = False) -> Float64:
        """Sum values of shape (L, P) by owner, or take the largest.

        NaN where a member is away, and at looks at which nothing is known.
        """
        found = np.zeros(self.present.shape)
        look, partition = np.nonzero((self.owner >= 0) & ~np.isnan(values))
        where = look, self.owner[look, partition]
        (np.maximum if worst else np.add).at(found, where, values[look, partition])
        found[~self.present] = np.nan
        found[np.isnan(values).all(axis=1)] = np.nan
        return found

    def owner_name(self, look: int, partition: int) -> str:
        """Return who owns a partition at a look, or `NOBODY`."""
        owner = int(self.owner[look, partition])
        return NOBODY if owner < 0 else self.members[owner]

    def changes(self) -> list[Change]:
        """Return where owners or members changed, the newest first: a rebalance each, or more."""
        moved = self.owner[1:] != self.owner[:-1]
        other = self.present[1:] != self.present[:-1]
        found = []
        for before in np.flatnonzero(moved.any(axis=1) | other.any(axis=1))[::-1].tolist():
            after = before + 1
            came, left = (
                tuple(
                    self.members[index]
                    for index in np.flatnonzero(other[before] & self.present[row])
                )
                for row in (after, before)
            )
            names = tuple(
                (
                    self.partitions[index],
                    self.owner_name(before, index),
                    self.owner_name(after, index),
                )
                for index in np.flatnonzero(moved[before]).tolist()
            )
            found.append(Change(self.at[after], names, came, left))
        return found


def most_of(names: Sequence[str], values: Float64, most: int) -> dict[str, list[float | None]]:
    """Return the names whose values are largest at any time, at most so many, in their order.

    Parameters
    ----------
    values
        Of shape (L, K) for K names; NaN: not known, None in the answer.

    Examples
    --------
    >>> most_of(["a", "b"], np.array([[1.0, 5.0], [np.nan, 2.0]]), 1)
    {'b': [5.0, 2.0]}
    """
    peaks = np.where(np.isnan(values), -np.inf, values).max(axis=0, initial=-np.inf)
    known = np.flatnonzero(np.isfinite(peaks))
    picked = np.sort(known[np.argsort(-peaks[known], kind="stable")][:most])
    return {
        names[index]: [None if np.isnan(value) else value for value in values[:, index].tolist()]
        for index in picked.tolist()
    }
