"""The format of times in plans and headers. Plan followers in every language parse it alike.

Belongs here: the valid formats of a time. Belongs elsewhere: the meaning of times.
"""

import re
from datetime import UTC, datetime

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.([0-9]{3}|[0-9]{6}))?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def write_time(time: datetime) -> str:
    """Format a time as ISO 8601 in UTC, to the millisecond."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: str) -> datetime:
    """Parse an ISO 8601 time with a time zone, to the second, millisecond or microsecond.

    This function accepts the same formats in every Python version; `datetime.fromisoformat` does
    not.

    Raises
    ------
    ValueError
        The text has another format.

    Examples
    --------
    >>> read_time("2026-03-01T18:00:00.250Z").isoformat()
    '2026-03-01T18:00:00.250000+00:00'
    """
    if not _TIME.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not a time such as '2026-03-01T18:00:00.250Z'")
    return datetime.fromisoformat(text)
