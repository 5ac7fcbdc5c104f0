"""Pages of the web application's own.

Belongs here: the list of groups. Does not: the review of a plan (`fairlead.surfaces.review`), whose
style and words it shares.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from sqlalchemy import Engine

from fairlead.common.visible import on_page
from fairlead.common.words import caught_up, length, listed, moment, number, percent, plural, span
from fairlead.domain.cohorts import cohort_of
from fairlead.domain.judgement.diagnosis import some
from fairlead.domain.policy import Policy
from fairlead.store.brakes import read_brakes
from fairlead.store.monitoring import LOOKED_WITHIN
from fairlead.store.reading import Row, read_groups, undecided
from fairlead.surfaces.links import asset_url

#: A page is for reading; whoever has more groups looks for a part of a name.
SHOWN: Final = 500

_TEMPLATES: Final = Environment(
    loader=ChoiceLoader(
        [PackageLoader("fairlead.surfaces.web"), PackageLoader("fairlead.surfaces.review")]
    ),
    autoescape=True,  # a group may have any name
    finalize=on_page,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "caught_up": caught_up,
    "listed": listed,
    "moment": moment,
    "named": some,
    "number": number,
    "percent": percent,
    "plural": plural,
    "seconds": length,
}


def groups_page(
    engine: Engine,
    find: str = "",
    *,
    dagster_url: str | None = None,
    policies: Sequence[Policy] = (),
    now: datetime | None = None,
) -> str:
    """Return the groups with their plans, as an HTML document; raises as `read_groups`.

    What waits for a person comes first.

    Parameters
    ----------
    engine
        Fairlead's database.
    find
        Only groups with this in their names.
    dagster_url
        Where the Dagster UI is reached; None: there is no link to it.
    policies
        From the settings: they say which cohort shows a group there.
    now
        Time-zone-aware: what ages are told by; None: the clock.
    """
    found = [row for row in read_groups(engine) if find in row["group"]]
    brakes = read_brakes(engine)
    found.sort(key=lambda row: row["waiting_state"] != "proposed")
    read_at = now or datetime.now(UTC)

    def age(at: datetime) -> str:
        return f"{span(read_at - at)} ago"

    def dagster(row: Row) -> str | None:
        return asset_url(dagster_url, "assignment_plan", cohort_of(row["group"], policies))

    return _TEMPLATES.get_template("groups.html").render(
        groups=found[:SHOWN],
        count=len(found),
        waiting=sum(row["waiting_state"] == "proposed" for row in found),
        find=find,
        undecided=undecided(found, read_at),
        old=[row["group"] for row in found if _is_old(row["last_seen"], read_at)],
        brakes=brakes,
        dagster_url=dagster_url,
        dagster=dagster,
        review=_review,
        age=age,
        now=read_at,
    )


def _is_old(last_seen: datetime | None, now: datetime) -> bool:
    return last_seen is not None and now - last_seen > LOOKED_WITHIN


def _review(row: Row, version: int) -> str:
    """Return the review's address relative to the list's: a proxy may have put it anywhere."""
    return f"review?{urlencode({'group': row['group'], 'version': version}, quote_via=quote)}"
