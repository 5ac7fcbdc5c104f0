"""Members that join and leave a group, and common series of such changes."""

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class MemberChange:
    """A member that joins (`joins`) or leaves the group, `at_s` seconds after the start."""

    at_s: float
    member: int
    joins: bool


def rolling_restart(
    members: int, from_s: float, *, every_s: float = 120.0, away_s: float = 60.0
) -> tuple[MemberChange, ...]:
    """Return changes in which members leave one by one, and join again under their old names."""
    starts = [from_s + number * every_s for number in range(members)]
    if any(after - before < away_s for before, after in pairwise(starts)):
        raise ValueError("a rolling restart takes one member away at a time")
    return tuple(
        MemberChange(at, member, joins)
        for member, start in enumerate(starts)
        for at, joins in ((start, False), (start + away_s, True))
    )


def replacements(
    members: int, new_members: int, *, from_s: float, every_s: float, away_s: float = 30.0
) -> tuple[MemberChange, ...]:
    """Return changes in which new members, with new names, replace the oldest ones one by one.

    Parameters
    ----------
    members
        Number of members at the start. They are numbered from 0 to `members` - 1.
    new_members
        Number of members that join. Their numbers begin at `members`.
    """
    return tuple(
        change
        for number in range(new_members)
        for at_s in (from_s + number * every_s,)
        for change in (
            MemberChange(at_s, number, joins=False),
            MemberChange(at_s + away_s, members + number, joins=True),
        )
    )
