"""Templates, filters and functions that all pages of the web application share.

Belongs here: formatting. Belongs elsewhere: the content of a page.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from fairlead.common.words import length
from fairlead.domain.analysis.diagnosis import a_few
from fairlead.domain.analysis.thresholds import SAMPLES_NEEDED
from fairlead.surfaces import next_step
from fairlead.surfaces.links import page_address
from fairlead.surfaces.offers import of_freeze
from fairlead.surfaces.templates import environment

TEMPLATES: Final = environment("web", "review")


def ages(now: datetime) -> Callable[[datetime], str]:
    """Return a function that formats how long before `now` a time was."""
    return lambda at: f"{length(now - at)} ago"


def minute(at: datetime) -> str:
    """Return a time as text, to the minute and without the year, in UTC.

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
