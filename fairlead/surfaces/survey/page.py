"""A survey for people: lines of 80 columns, and one page that needs no network.

Belongs here: the order of figures. Does not: the figures (`finding`).
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from fairlead.common.visible import on_page
from fairlead.common.words import caught_up, length, listed, plural
from fairlead.surfaces.survey.finding import ENOUGH, Row

_WIDTH: Final = 80


def facts(row: Row) -> list[tuple[str, str]]:
    """Return what is said of a group: a heading and its text, those that are known."""
    owners = [f"{name} ({count})" for name, count in row["owners"].items()]
    judged = row["diagnosis"] not in {None, "unknown"}
    told = {
        "wrong": row["error"],
        "evidence": row["evidence"],
        "late": length(row["late_s"]) if judged else None,
        "caught up": caught_up(row["caught_up_s"], row["looked_at"]) if judged else None,
        "records lost": judged
        and (f"in {length(row['loss_s'])}" if row["loss_s"] is not None else "no"),
        "a plan": row["gain"],
        "consumers": row["consumers"] if judged else None,
        "lag": f"{row['lag']:,} records in {plural(row['partitions'], 'partition')}"
        + (f", {row['uncommitted']:,} without a commit" if row["uncommitted"] else ""),
        "owners": listed(owners) if owners else "none",
        "clients": listed(row["clients"]) if row["clients"] else None,
        "protocol": f"{row['group_type'] or 'classic'}, {row['protocol'] or 'no assignor'}",
        "to follow": row["follow"],
        "Kafka 5, 6": row["kafka_5_6"],
    }
    return [(heading, str(text)) for heading, text in told.items() if text]


def lead(rows: Sequence[Row], looks: int) -> str:
    """Return what a survey begins with."""
    return f"{plural(len(rows), 'group')}, worst first, after {plural(looks, 'look')}" + (
        "." if looks >= ENOUGH else f"; diagnoses come with look {ENOUGH}."
    )


def as_lines(rows: Sequence[Row], missing: Sequence[Row], looks: int) -> Iterator[str]:
    """Yield a survey in lines of 80 columns; names and commands are never broken."""
    yield lead(rows, looks)
    for row in rows:
        yield ""
        yield f"{row['group']}: {row['diagnosis'] or row['state'] or 'not known'}"
        for heading, text in facts(row):
            yield from wrap(
                text,
                _WIDTH,
                initial_indent=f"  {heading:<13}",
                subsequent_indent=" " * 15,
                break_long_words=False,
                break_on_hyphens=False,
            )
    for right in missing:
        yield ""
        yield f"Describe is missing on {right['kind']} {right['name']}: {right['then']}"
        yield f"  {right['remedy']}"


def as_page(rows: Sequence[Row], missing: Sequence[Row], looks: int) -> str:
    """Return a survey as an HTML document."""
    environment = Environment(
        loader=PackageLoader("fairlead.surfaces.survey"),
        autoescape=True,  # groups and clients may have any name
        finalize=on_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["facts"] = facts
    return environment.get_template("survey.html").render(
        rows=rows, missing=missing, lead=lead(rows, looks)
    )
