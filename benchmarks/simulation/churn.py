"""Members that join and leave a group, and common series of such changes."""

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class MemberChange:
    """A member that joins or leaves, seconds from the start."""

    at_s: float
    member: int
    joins: bool


def rolling_restart(
    members: int, from_s: float, *, every_s: float = 120.0, away_s: float = 60.0
) -> tuple[MemberChange, ...]:
    """Return changes in which each member in turn leaves and rejoins later under the same name."""
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
    """Return changes in which a new member with a new name repeatedly replaces the oldest one.

    Parameters
    ----------
    members
        Number of members at the start; they have the numbers 0 to `members` - 1.
    new_members
        Number of members that join; they have the following numbers.
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
