"""The result of one check of the doctor.

Belongs here: its fields. Does not: the checks.
"""

from dataclasses import dataclass
from datetime import datetime

from fairlead.common.words import plural


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Parameters
    ----------
    name
        What was checked.
    state
        `ok`; `warning`: it works with a limit; `failed`: it does not work.
    detail
        What was found.
    remedy
        What to do; "": nothing.
    """

    name: str
    state: str
    detail: str
    remedy: str = ""


def ago(then: datetime, now: datetime) -> str:
    """Say how long ago something was.

    Examples
    --------
    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> ago(now - timedelta(minutes=7), now)
    '7 minutes ago'
    """
    minutes = int((now - then).total_seconds() / 60)
    return f"{plural(minutes, 'minute')} ago" if minutes else "less than a minute ago"
