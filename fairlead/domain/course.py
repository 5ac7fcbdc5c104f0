"""What follows from who owned what when: changes of owners, who came and left, lag by name.

Belongs here: pure functions over what snapshots saw. Does not: reading them
(`fairlead.store.course`), drawing them (`fairlead.surfaces.plots`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import Final, Literal, NamedTuple

#: What nobody owns is under this name.
NOBODY: Final = "nobody"


class Seen(NamedTuple):
    """One partition in one snapshot: `partition` is "topic-number", `lag` in records."""

    at: datetime
    partition: str
    member: str | None
    lag: int | None

    @property
    def owner(self) -> str:
        """The member's name, or `NOBODY`."""
        return self.member or NOBODY


@dataclass(frozen=True)
class Change:
    """What changed between two snapshots.

    Parameters
    ----------
    since, at
        When the snapshots before and after it were taken.
    moved
        Partition, owner before, owner after.
    came, left
        Members that own something in one of the two alone.
    """

    since: datetime
    at: datetime
    moved: tuple[tuple[str, str, str], ...]
    came: tuple[str, ...]
    left: tuple[str, ...]


def changes(seen: Iterable[Seen]) -> list[Change]:
    """Return when owners changed, the newest first: at least one rebalance lies in each change.

    Parameters
    ----------
    seen
        By time.

    Examples
    --------
    >>> from datetime import UTC
    >>> one, two = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    >>> (change,) = changes([Seen(one, "t-0", "a", 5), Seen(two, "t-0", "b", 4)])
    >>> change.moved, change.came, change.left
    ((('t-0', 'a', 'b'),), ('b',), ('a',))
    """
    owners = [
        (at, {one.partition: one.owner for one in rows})
        for at, rows in groupby(seen, key=lambda one: one.at)
    ]
    found = []
    for (since, before), (at, after) in pairwise(owners):
        moved = tuple(
            (name, before.get(name, NOBODY), owner)
            for name, owner in after.items()
            if before.get(name, NOBODY) != owner
        )
        if moved:
            was, is_now = ({*of.values()} - {NOBODY} for of in (before, after))
            came, left = tuple(sorted(is_now - was)), tuple(sorted(was - is_now))
            found.append(Change(since, at, moved, came, left))
    return found[::-1]


def lag_by(
    seen: Sequence[Seen], what: Literal["owner", "partition"], *, most: int
) -> tuple[list[datetime], dict[str, list[float | None]], int]:
    """Add up lag by owner or partition, over time.

    Returns
    -------
    The times, ascending; of at most so many names, those with the most lag at any time, by name,
    their lag in records, a value a time, None where a name is not there; and how many names there
    are.

    Examples
    --------
    >>> from datetime import UTC
    >>> day = datetime(2026, 1, 1, tzinfo=UTC)
    >>> rows = [Seen(day, "t-0", "a", 5), Seen(day, "t-1", "a", 4), Seen(day, "t-2", None, 1)]
    >>> lag_by(rows, "owner", most=1)[1:]
    ({'a': [9.0]}, 2)
    """
    times = sorted({one.at for one in seen})
    place = {at: index for index, at in enumerate(times)}
    lags: dict[str, list[float | None]] = {}
    for one in seen:
        if one.lag is not None:
            values = lags.setdefault(getattr(one, what), [None] * len(times))
            values[place[one.at]] = (values[place[one.at]] or 0.0) + one.lag
    order = sorted(lags, key=lambda name: (-max(one or 0.0 for one in lags[name]), name))
    picked = sorted(order[:most], key=lambda name: (name == NOBODY, name))
    return times, {name: lags[name] for name in picked}, len(lags)
