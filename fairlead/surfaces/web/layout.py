"""What pages of the web application share: templates, addresses, ages.

Belongs here: how something is written on any of them. Does not: what a page shows.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from fairlead.common.visible import on_page
from fairlead.common.words import caught_up, length, listed, moment, number, percent, plural, span
from fairlead.domain.judgement.capacities import STEPS
from fairlead.domain.judgement.diagnosis import a_few
from fairlead.surfaces import standing

TEMPLATES: Final = Environment(
    loader=ChoiceLoader(
        [PackageLoader("fairlead.surfaces.web"), PackageLoader("fairlead.surfaces.review")]
    ),
    autoescape=True,  # a group may have any name
    finalize=on_page,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


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


TEMPLATES.filters |= {
    "caught_up": caught_up,
    "listed": listed,
    "minute": minute,
    "moment": moment,
    "named": a_few,
    "number": number,
    "percent": percent,
    "plural": plural,
    "seconds": length,
    "span": span,
}
TEMPLATES.globals |= {
    "address": page_address,
    "follows": standing.follows,
    "kind": standing.kind,
    "looks_needed": STEPS + 1,
}
