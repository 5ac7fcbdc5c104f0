"""Pages of the web application's own.

Belongs here: the list of groups. Does not: the review of a plan (`fairlead.review`).
"""

from typing import Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from sqlalchemy import Engine

from fairlead.store.reading import Row, read_groups

#: A page is for reading; whoever has more groups looks for a part of a name.
SHOWN: Final = 500

_TEMPLATES: Final = Environment(
    loader=PackageLoader("fairlead.web"),
    autoescape=True,  # a group may have any name
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def groups_page(engine: Engine, find: str = "", *, dagster_url: str | None = None) -> str:
    """Return the groups with their plans, as an HTML document; raises as `read_groups`.

    Parameters
    ----------
    engine
        Fairlead's database.
    find
        Only groups with this in their names.
    dagster_url
        Where the Dagster UI is reached; None: there is no link to it.
    """
    found = [row for row in read_groups(engine) if find in row["group"]]
    return _TEMPLATES.get_template("groups.html").render(
        groups=found[:SHOWN],
        count=len(found),
        find=find,
        dagster_url=dagster_url,
        review=_review,
    )


def _review(row: Row, version: int) -> str:
    """Return the review's address relative to the list's: a proxy may have put it anywhere."""
    return f"review?{urlencode({'group': row['group'], 'version': version}, quote_via=quote)}"
