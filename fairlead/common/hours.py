"""Hours of the week in a time zone.

Belongs here: parsing hours such as "Mon-Fri 22:00-06:00", and checking whether a time is in them.
Belongs elsewhere: what is allowed at these hours (`fairlead.domain.policy`).
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_A_DAY = "|".join(_DAYS)
_HOURS = re.compile(rf"(?:({_A_DAY})(?:-({_A_DAY}))? )?(\d\d):(\d\d)-(\d\d):(\d\d)", re.ASCII)
_DAY = 24 * 60


class Hours(NamedTuple):
    """The same hours on some days of the week, from `start` until just before `end`.

    `start` and `end` are minutes after midnight. If `end` is less than `start`, the hours end on
    the next day. `days` has the days on which the hours begin; 0 is Monday.
    """

    start: int
    end: int
    days: frozenset[int]

    def contain(self, day: int, minute: int) -> bool:
        """Whether a minute of a day of the week is within the hours."""
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        began = day if minute >= self.start else (day - 1) % 7
        return began in self.days and (minute >= self.start or minute < self.end)


def parse_hours(text: str) -> Hours:
    """Parse hours such as "22:00-06:00" (every day) or "Mon-Fri 12:00-13:00".

    Raises
    ------
    ValueError
        The text is invalid, or start and end are equal.

    Examples
    --------
    >>> parse_hours("Fri-Sun 22:00-06:00")
    Hours(start=1320, end=360, days=frozenset({4, 5, 6}))
    """
    match = _HOURS.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a period like '22:00-06:00' or 'Mon-Fri 12:00-13:00'")
    hour, minute, end_hour, end_minute = map(int, match.groups()[2:])
    hours = Hours(60 * hour + minute, 60 * end_hour + end_minute, _days(match[1], match[2]))
    if minute > 59 or end_minute > 59 or hours.start >= _DAY or hours.end > _DAY:  # noqa: PLR2004
        raise ValueError(f"{text!r}: a day has the times 00:00 to 24:00")
    if hours.start == hours.end:
        raise ValueError(f"{text!r} starts and ends at the same time; a whole day is '00:00-24:00'")
    return hours


def _days(first: str | None, last: str | None) -> frozenset[int]:
    if first is None:
        return frozenset(range(7))
    start, end = _DAYS.index(first), _DAYS.index(last or first)
    return frozenset((start + day) % 7 for day in range((end - start) % 7 + 1))


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name.

    Raises
    ------
    ValueError
        This machine has no time zone of this name.
    """
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # a directory, a path, or an unknown name
        raise ValueError(f"{name!r} is not a time zone such as 'Europe/Berlin'") from None


def within(hours: Iterable[str], zone: str, now: datetime) -> bool:
    """Whether a time is within any of these hours in this time zone.

    Examples
    --------
    >>> from datetime import UTC
    >>> late = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)
    >>> within(["00:00-06:00"], "Europe/Berlin", late), within(["00:00-06:00"], "UTC", late)
    (True, False)
    """
    clock = now.astimezone(time_zone(zone))
    minute = 60 * clock.hour + clock.minute
    return any(parse_hours(text).contain(clock.weekday(), minute) for text in hours)
