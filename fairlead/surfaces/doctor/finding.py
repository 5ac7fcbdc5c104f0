"""What the doctor finds of one thing.

Belongs here: its form. Does not: finding it.
"""

from dataclasses import dataclass
from datetime import datetime

from fairlead.common.words import plural


@dataclass(frozen=True)
class Finding:
    """What was found of one thing.

    Parameters
    ----------
    name
        The thing.
    state
        `ok`; `warning`: it works, but for something; `failed`: it does not work.
    said
        What was found.
    remedy
        What to do; "": nothing.
    """

    name: str
    state: str
    said: str
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
