"""How results are shown in the Dagster UI: tables with the worst first, figures with units.

Belongs here: library results to Dagster metadata. Does not: computing them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeVar

import dagster as dg

from fairlead.surfaces.links import launchpad_url
from fairlead.surfaces.plots import as_markdown

Thing = TypeVar("Thing")

#: A table in the UI is for reading; the rest is in Postgres.
ROWS: Final = 40
DECIMALS: Final = 3
#: Whole numbers that are names or addresses, not counts: nothing separates their digits.
NAMES: Final = frozenset({"partition", "version", "offset"})
#: Longer texts are cut: a table is stored with every partition of a run.
LENGTH: Final = 300


def table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> dg.TableMetadataValue:
    """Show rows as a table.

    Parameters
    ----------
    rows
        What to show; at most `ROWS` of them are. Counts are written with separators, as text:
        the UI shows numbers bare.
    columns
        Column name to its description, in order; keys of `rows`.
    """
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord({name: _cell(name, row[name]) for name in columns})
            for row in rows[:ROWS]
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn(name, description=description)
                for name, description in columns.items()
            ]
        ),
    )


def columns_for(groups: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return a table's columns without the group's name where it would be the same in each row.

    Examples
    --------
    >>> columns_for(["orders"], {"group": "Consumer group", "lag": "Records"})
    {'lag': 'Records'}
    """
    return {name: what for name, what in columns.items() if name != "group" or len(groups) > 1}


def others(count: int) -> dict[str, str]:
    """Say what a table of so many rows leaves out, as metadata; nothing if it shows all.

    Examples
    --------
    >>> others(3), others(1_040)
    ({}, {'groups not shown': '1,000: they need less attention than the 40 in the tables'})
    """
    if count <= ROWS:
        return {}
    less = f"{count - ROWS:,}: they need less attention than the {ROWS} in the tables"
    return {"groups not shown": less}


def picture(svg: str, alt: str) -> dg.MarkdownMetadataValue:
    """Show a plot."""
    return dg.MetadataValue.md(as_markdown(svg, alt))


def launchpad(text: str, job: str, op: str, **config: str | int) -> dg.MarkdownMetadataValue:
    """Link to the launchpad of a job, filled in but for the reason, without which it cannot start.

    Examples
    --------
    >>> launchpad("Reject it", "reject", "reject_plan", version=7).md_str[:60]
    '[Reject it](/locations/fairlead/jobs/reject/playground/setup'
    """
    return dg.MetadataValue.md(f"[{text}]({launchpad_url('', job, op, **config)})")


def _cell(name: str, value: Any) -> str | int | None:
    if value is None or (isinstance(value, int) and name in NAMES):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float | Decimal):
        return f"{round(value, DECIMALS):,}".removesuffix(".0")
    text = str(value)
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"


def in_order(
    things: Iterable[Thing], groups: Sequence[str], group_of: Callable[[Thing], str]
) -> list[Thing]:
    """Return what is about some groups, in their order."""
    place = {group: number for number, group in enumerate(groups)}
    mine = [thing for thing in things if group_of(thing) in place]
    return sorted(mine, key=lambda thing: place[group_of(thing)])
