"""The result of one check of the doctor.

Belongs here: its fields, and what several checks share. Does not: the checks.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fairlead.common.words import plural


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Parameters
    ----------
    name
        Name of the check.
    state
        `ok`; `warning`: it works with a limit; `failed`: it does not work.
    detail
        The result in a sentence.
    remedy
        The remedy; "": none is needed.
    """

    name: str
    state: str
    detail: str
    remedy: str = ""


def ago(then: datetime, now: datetime) -> str:
    """Write the time since a moment.

    Examples
    --------
    >>> from datetime import UTC, timedelta
    >>> now = datetime(2026, 1, 5, tzinfo=UTC)
    >>> ago(now - timedelta(minutes=7), now)
    '7 minutes ago'
    """
    minutes = int((now - then).total_seconds() / 60)
    return f"{plural(minutes, 'minute')} ago" if minutes else "less than a minute ago"


def existing(path: Path) -> Path:
    """Return a path if it exists, else its nearest folder that does."""
    return next(place for place in (path, *path.parents) if place.exists())
