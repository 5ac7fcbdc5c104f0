"""Formatters for figures, times and names.

Belongs here: the text of a value. Belongs elsewhere: sentences.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import floor, log10
from typing import Any, Final

_NAMES: Final = 10
#: Maximum length of a name in a sentence. Topics have at most 249 characters, client ids 32,000.
_NAME: Final = 300
_CUT: Final = 250
_YEAR_S: Final = 365 * 86_400.0


def as_text(value: Any) -> str:
    """Return a value as text for people; times are in UTC.

    Examples
    --------
    >>> [as_text(value) for value in (None, 1234567, 0.25, True)]
    ['', '1,234,567', '0.25', 'yes']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float | Decimal):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return str(value)


def number(value: float | Decimal | None) -> str:
    """Format a whole number.

    Examples
    --------
    >>> number(1234567.0), number(None)
    ('1,234,567', 'unknown')
    """
    return "unknown" if value is None else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """Format a share as a percentage; a share below 1 never becomes 100 %.

    Examples
    --------
    >>> percent(0.4), percent(0.9999), percent(1), percent(None)
    ('40.0 %', '99.9 %', '100.0 %', 'unknown')
    """
    if share is None:
        return "unknown"
    return f"{100 * (min(share, 0.999) if share < 1 else share):,.1f} %"


def times(factor: float | None) -> str:
    """Format a factor.

    Examples
    --------
    >>> times(1.5), times(None)
    ('1.50 x', 'unknown')
    """
    return "unknown" if factor is None else f"{factor:,.2f} x"


def moment(at: datetime | None) -> str:
    """Format a time, in UTC.

    Examples
    --------
    >>> moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    '2026-01-02 03:04:05 UTC'
    """
    return "never" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def catch_up_time(seconds: float | None, since: datetime) -> str:
    """Format the time when a group will have caught up, in UTC.

    Parameters
    ----------
    seconds
        Seconds from `since`; None: never.
    since
        Time of the forecast; time-zone-aware.

    Examples
    --------
    >>> noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    >>> [catch_up_time(seconds, noon) for seconds in (0.0, 1800.0, 50_000.0, 1e12, None)]
    ['now', 'at 12:30 UTC', 'at 2026-01-03 01:53 UTC', 'not within a year', 'never']
    """
    if seconds is None:
        return "never"
    if seconds <= 0:
        return "now"
    if seconds > _YEAR_S:
        return "not within a year"
    since = since.astimezone(UTC)
    then = since + timedelta(seconds=seconds)
    return f"at {then:{'%H:%M' if then.date() == since.date() else '%Y-%m-%d %H:%M'}} UTC"


def length(duration: float | timedelta | None) -> str:
    """Format a duration; a number is in seconds.

    A negative duration is "0 s": clocks differ, so a recent event may seem to be in the future.

    Examples
    --------
    >>> length(-1), length(61), length(timedelta(hours=2)), length(200_000), length(None)
    ('0 s', '61 s', '2 h', '2.3 days', 'unknown')
    """
    minute, hour, day = 60.0, 3600.0, 86_400.0
    if duration is None:
        return "unknown"
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    seconds = max(seconds, 0.0)
    if seconds < 2 * minute:
        return f"{seconds:.0f} s"
    if seconds < 2 * hour:
        return f"{seconds / minute:.0f} min"
    return f"{seconds / hour:.0f} h" if seconds < 2 * day else f"{seconds / day:.1f} days"


def milliseconds(seconds: float) -> str:
    """Format a duration in milliseconds.

    Examples
    --------
    >>> [milliseconds(seconds) for seconds in (0.00012, 0.0041, 0.00998, 0.04125, 3.2)]
    ['0.12 ms', '4.1 ms', '10 ms', '41 ms', '3,200 ms']
    """
    value = 1e3 * seconds
    digits = 2 if value < 0.995 else 1 if value < 9.95 else 0  # noqa: PLR2004 - thresholds for two digits
    return f"{value:,.{digits}f} ms"


def gigabytes(amount: float | None) -> str | None:
    """Format a number of gigabytes; return None if it is unknown.

    Examples
    --------
    >>> [gigabytes(amount) for amount in (1234.5, 12.34, 0.0123, 0.0)]
    ['1,234 GB', '12.3 GB', '0.012 GB', '0 GB']
    """
    if amount is None:
        return None
    digits = 0 if not amount else max(0, min(3, 2 - floor(log10(amount))))
    return f"{amount:,.{digits}f} GB"


def rate(per_s: float) -> str:
    """Format a rate in records per second.

    Examples
    --------
    >>> rate(0.25), rate(7.3), rate(1234.0)
    ('0.25/s', '7.3/s', '1,234/s')
    """
    if per_s >= 100:  # noqa: PLR2004 - no decimals from 100 on
        return f"{per_s:,.0f}/s"
    return f"{per_s:.3g}/s"


def plural(count: int, what: str) -> str:
    """Format a number with a noun, such as "2 partitions".

    Examples
    --------
    >>> plural(1, "partition"), plural(2000, "partition")
    ('1 partition', '2,000 partitions')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def shortened(name: str) -> str:
    """Return a name for a message, shortened if it is longer than any topic name.

    Examples
    --------
    >>> shortened("orders"), shortened("x" * 32_000)[-25:]
    ('orders', 'xx... (32,000 characters)')
    """
    return name if len(name) <= _NAME else f"{name[:_CUT]}... ({len(name):,} characters)"


def listed(names: Sequence[str], count: int | None = None, *, at_most: int = _NAMES) -> str:
    """Return the first names of a list as text, with the number of the other names.

    Parameters
    ----------
    count
        Number of all names, if `names` has only the first.
    at_most
        Maximum number of names to write.

    Examples
    --------
    >>> listed(["a", "b"]), listed(["a"], 3), listed("abcde", at_most=3)
    ('a, b', 'a and 2 more', 'a, b, c and 2 more')
    """
    first = list(map(shortened, names[:at_most]))
    more = (len(names) if count is None else count) - len(first)
    return ", ".join(first) + (f" and {more:,} more" if more else "")
