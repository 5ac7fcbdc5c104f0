"""What pages of the web application share: templates, addresses, ages.

Belongs here: how something is written on any of them. Does not: what a page shows.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

from fairlead.common.words import span
from fairlead.domain.analysis.diagnosis import a_few
from fairlead.domain.analysis.thresholds import SAMPLES_NEEDED
from fairlead.surfaces import next_step
from fairlead.surfaces.offers import of_freeze
from fairlead.surfaces.templates import environment

TEMPLATES: Final = environment("web", "review")


def page_address(page: str, **query: str | int) -> str:
    """Return an address relative to the list's: a proxy may have put it anywhere.

    Examples
    --------
    >>> page_address("group", group="orders & more")
    'group?group=orders%20%26%20more'
    """
    return f"{page}?{urlencode(query, quote_via=quote)}"


def ages(now: datetime) -> Callable[[datetime], str]:
    """Return what writes how long ago something was, as of a moment."""
    return lambda at: f"{span(now - at)} ago"


def minute(at: datetime) -> str:
    """Write a moment of these days, as plots do.

    Examples
    --------
    >>> minute(datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    '02 Jan 03:04'
    """
    return f"{at.astimezone(UTC):%d %b %H:%M}"


TEMPLATES.filters |= {"minute": minute, "named": a_few}
TEMPLATES.globals |= {
    "address": page_address,
    "follows": next_step.follows,
    "is_checked": next_step.is_checked,
    "kind": next_step.kind,
    "samples_needed": SAMPLES_NEEDED,
    "of_freeze": of_freeze,
}
