"""Hours of the day, by the clock of a time zone: when something may happen.

Belongs here: reading "22:00-06:00" and time zones, and whether a moment lies within. Does not: what
may happen then (`fairlead.policy`).
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

_HOURS = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)", re.ASCII)
_DAY = 24 * 60


class Hours(NamedTuple):
    """A stretch of the day in minutes after midnight: from `start`, up to and without `end`.

    Where `end` lies before `start` the stretch goes over midnight.
    """

    start: int
    end: int

    def contain(self, minute: int) -> bool:
        """Whether a minute of the day lies within."""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def parse_hours(text: str) -> Hours:
    """Read a stretch of the day.

    Raises
    ------
    ValueError
        The text is none, or the stretch has no length.

    Examples
    --------
    >>> parse_hours("22:00-06:00")
    Hours(start=1320, end=360)
    """
    found = _HOURS.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} are no hours such as '22:00-06:00'")
    hour, minute, end_hour, end_minute = map(int, found.groups())
    hours = Hours(60 * hour + minute, 60 * end_hour + end_minute)
    if minute > 59 or end_minute > 59 or hours.start >= _DAY or hours.end > _DAY:  # noqa: PLR2004
        raise ValueError(f"{text!r}: a day has the times 00:00 to 24:00")
    if hours.start == hours.end:
        raise ValueError(f"{text!r} has no length; the whole day is '00:00-24:00'")
    return hours


def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name.

    Raises
    ------
    ValueError
        There is none of this name on this machine.
    """
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):  # a folder, a path, an unknown name
        raise ValueError(f"{name!r} is no time zone such as 'Europe/Berlin'") from None


def within(hours: Iterable[str], zone: str, now: datetime) -> bool:
    """Whether a moment lies within some stretch of the day, by the clock of a time zone.

    Examples
    --------
    >>> from datetime import UTC
    >>> late = datetime(2026, 7, 1, 22, 30, tzinfo=UTC)
    >>> within(["00:00-06:00"], "Europe/Berlin", late), within(["00:00-06:00"], "UTC", late)
    (True, False)
    """
    clock = now.astimezone(time_zone(zone))
    return any(parse_hours(text).contain(60 * clock.hour + clock.minute) for text in hours)
