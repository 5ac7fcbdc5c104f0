"""Results as Dagster metadata: tables, links and counts.

Belongs here: converting the library's results to metadata. Belongs elsewhere: computing the
results.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import dagster as dg

from fairlead.common.commands import fairlead_command
from fairlead.common.words import as_text
from fairlead.settings import WebSettings
from fairlead.surfaces.links import page_url

Thing = TypeVar("Thing")

#: Maximum number of rows of a table; all rows are in Postgres.
ROWS: Final = 40
#: Columns whose numbers identify a thing, so that they get no thousands separators.
NAMES: Final = frozenset({"partition", "version"})
#: Maximum characters of a cell. Cells are short, since Dagster stores a copy of the table for each
#: of its partitions (cohorts) in the run.
LENGTH: Final = 300


def table(rows: Sequence[Mapping[str, Any]]) -> dg.TableMetadataValue:
    """Return rows as a table.

    Parameters
    ----------
    rows
        Each maps column names to values; all have the same columns. Rows after the first `ROWS`
        are dropped. Counts become text with thousands separators, since the UI adds none.
    """
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord({name: _cell(name, value) for name, value in row.items()})
            for row in rows[:ROWS]
        ],
        schema=dg.TableSchema(columns=[dg.TableColumn(name) for row in rows[:1] for name in row]),
    )


def others(count: int) -> dict[str, str]:
    """Return metadata with the number of groups that a table leaves out; empty if none.

    Examples
    --------
    >>> others(3), others(1_040)
    ({}, {'groups not shown': '1,000: they need less attention than the 40 in the table'})
    """
    if count <= ROWS:
        return {}
    less = f"{count - ROWS:,}: they need less attention than the {ROWS} in the table"
    return {"groups not shown": less}


def link(text: str, url: str) -> dg.MarkdownMetadataValue:
    """Return a link."""
    return dg.MetadataValue.md(f"[{text}]({url})")


def details(
    text: str, web: WebSettings, group: str, version: int | None = None
) -> str | dg.MarkdownMetadataValue:
    """Return a link to the page of a group or the review of a plan version.

    If `web.url` is not set, return the command that shows the same information.

    Examples
    --------
    >>> details("Open", WebSettings(url="https://plans.example"), "orders").md_str
    '[Open](https://plans.example/group?group=orders)'
    >>> details("Open", WebSettings(), "orders"), details("Open", WebSettings(), "-a", 7)
    ('fairlead why orders', 'fairlead plans review -- -a 7')
    """
    url = page_url(web, group, version)
    if url is not None:
        return link(text, url)
    if version is None:
        return fairlead_command("why", group)
    return fairlead_command("plans review", group, str(version))


def in_order(
    things: Iterable[Thing], groups: Sequence[str], group_of: Callable[[Thing], str]
) -> list[Thing]:
    """Sort `things` by the position of their group in `groups`; drop things of other groups."""
    place = {group: number for number, group in enumerate(groups)}
    selected = [thing for thing in things if group_of(thing) in place]
    return sorted(selected, key=lambda thing: place[group_of(thing)])


def _cell(name: str, value: Any) -> str | int | None:
    if value is None or (isinstance(value, int) and name in NAMES):
        return value
    text = as_text(value)
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"
