"""Lengths of time and shares as the UI shows them; empty where they are not known."""

from fairlead.common.words import length


def span(length_s: float | None) -> str | None:
    """Write a length of time.

    Examples
    --------
    >>> span(61.0), span(None)
    ('61 s', None)
    """
    return None if length_s is None else length(length_s)


def share(value: float | None) -> str | None:
    """Write a share of what somebody can do.

    Examples
    --------
    >>> share(0.854), share(None)
    ('85\N{NO-BREAK SPACE}%', None)
    """
    return None if value is None else f"{100 * value:.0f}\N{NO-BREAK SPACE}%"
