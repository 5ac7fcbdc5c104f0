"""Figures and times as people read them.

Belongs here: text of a value, in one way on the whole page. Does not: sentences.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from fairlead.domain.judgement.diagnosis import seconds as written

_NAMES: Final = 10
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


def number(value: float | Decimal | None) -> str:
    """Write a whole number.

    Examples
    --------
    >>> number(1234567.0), number(None)
    ('1,234,567', 'unknown')
    """
    return "unknown" if value is None else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """Write a share of one.

    Examples
    --------
    >>> percent(0.4), percent(None)
    ('40.0 %', 'unknown')
    """
    return "unknown" if share is None else f"{100 * share:,.1f} %"


def moment(at: datetime | None) -> str:
    """Write a time, in UTC.

    Examples
    --------
    >>> moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02 03:04:05 UTC'
    """
    return "never" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def length(seconds: float | None) -> str:
    """Write a forecast length of time.

    Examples
    --------
    >>> length(61.0), length(None)
    ('61 s', 'unknown')
    """
    return "unknown" if seconds is None else written(seconds)


def span(length: timedelta) -> str:
    """Write a length of time by its two largest units.

    Examples
    --------
    >>> [span(timedelta(seconds=seconds)) for seconds in (40, 3_600, 90_061)]
    ['less than a minute', '1 h', '1 d 1 h']
    """
    left, parts = int(length.total_seconds()), []
    for unit, seconds in _UNITS:
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count:,} {unit}")
    return " ".join(parts[:2]) or "less than a minute"


def plural(count: int, what: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> plural(1, "partition"), plural(2000, "partition")
    ('1 partition', '2,000 partitions')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def listed(names: Sequence[str], count: int | None = None) -> str:
    """Write names, at most ten of them.

    Parameters
    ----------
    count
        How many there are, where `names` are the first of them.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a"], 3)
    ('a, b', 'a and 2 more')
    """
    shown = names[:_NAMES]
    more = (len(names) if count is None else count) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
