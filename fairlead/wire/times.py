"""Times as they stand in plans and beside them: texts that every language's follower reads alike.

Belongs here: which texts are times. Does not: what they are the times of.
"""

import re
from datetime import datetime

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.([0-9]{3}|[0-9]{6}))?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def read_time(text: str) -> datetime:
    """Read a time of ISO 8601: to the second, the millisecond or the microsecond, with its zone.

    `datetime.fromisoformat` alone reads more than that, and not the same in every version.

    Raises
    ------
    ValueError
        The text is no such time.

    Examples
    --------
    >>> read_time("2026-03-01T18:00:00.250Z").isoformat()
    '2026-03-01T18:00:00.250000+00:00'
    """
    if not _TIME.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no time such as '2026-03-01T18:00:00.250Z'")
    return datetime.fromisoformat(text)
