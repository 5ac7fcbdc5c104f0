"""A survey as text of 80 columns, and as one HTML file.

Belongs here: the order of the figures. Belongs elsewhere: computing the figures (`finding`).
"""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Final

from fairlead.common.visible import visible
from fairlead.common.words import catch_up_time, length, listed, moment, plural, shortened
from fairlead.domain.figures import figure
from fairlead.domain.work_text import work_of_group
from fairlead.surfaces.next_step import kind
from fairlead.surfaces.survey.finding import ENOUGH, Row
from fairlead.surfaces.templates import environment

_WIDTH: Final = 80


def facts(row: Row) -> list[tuple[str, str]]:
    """Return the known facts about a group as pairs of a heading and a text."""
    owners = [f"{shortened(name)} ({count})" for name, count in row["owners"].items()]
    analysed = row["diagnosis"] not in {None, "unknown"}
    work = work_of_group(row["reported"])
    texts = {
        "error": row["error"],
        "evidence": row["evidence"],
        figure("forecast_time_lag_s").label.lower(): _late(row),
        figure("catch_up_s").label.lower(): _catch_up_time(row),
        "not planned": row["not_planned"],
        figure("loss_s").label.lower(): _losses(row, analysed=analysed),
        "a plan": row["gain"] if (row["evidence"] or "") not in (row["gain"] or "") else None,
        "consumers": row["consumers"] if analysed else None,
        "per record": work.get(figure("seconds_per_record").label),
        "busy": work.get(figure("busy").label),
        "lag": _lag(row),
        "left topics": listed(
            [
                f"{topic['topic']} ({plural(topic['partitions'], 'partition')}, "
                f"{plural(topic['lag'], 'record')} behind the commits)"
                for topic in row["left"]
            ]
        ),
        "owners": listed(owners) if owners else "none",
        "clients": listed(row["clients"]) if row["clients"] else None,
        "protocol": f"{row['group_type'] or 'classic'}, {row['protocol'] or 'no assignor'}",
    }
    return [(heading, str(text)) for heading, text in texts.items() if text]


def _lag(row: Row) -> str:
    text = f"{row['lag']:,} records in {plural(row['partitions'], 'partition')}"
    if not row["uncommitted"]:
        return text
    if not row["uncommitted_lag"]:
        return f"{text}, {row['uncommitted']:,} without a commit"
    return (
        f"{text}; {row['uncommitted_lag']:,} of them in {row['uncommitted']:,} without a commit, "
        "which count only if its consumers start at the beginning (auto_offset_reset)"
    )


def _losses(row: Row, *, analysed: bool) -> str:
    """Return how many records were lost, and when more will be lost."""
    lost = f"{row['lost']:,}, first seen at {moment(row['lost_at'])}" if row["lost"] else ""
    if not analysed:
        return lost
    if row["loss_s"] is None:
        return lost or "no"
    return f"{lost}; more in {length(row['loss_s'])}" if lost else f"in {length(row['loss_s'])}"


def _late(row: Row) -> str:
    return (
        ""
        if row["forecast_time_lag_s"] is None
        else figure("forecast_time_lag_s").text(row["forecast_time_lag_s"])
    )


def _catch_up_time(row: Row) -> str:
    if row["diagnosis"] in {None, "unknown"}:
        return ""
    return catch_up_time(row["catch_up_s"], row["sampled_at"])


def advice(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return how clients could follow plans, as pairs: names of groups, and advice for them."""
    about: dict[str, list[str]] = {}
    for row in rows:
        about.setdefault(row["follow"], []).append(row["group"])
    return [(listed(groups), text) for text, groups in about.items()]


def lead(rows: Sequence[Row], samples: int, others: Mapping[str, int]) -> str:
    """Return the introduction of a survey.

    `others` maps a kind of group, such as `share`, to the number of groups that are not listed.
    """
    outlook = f"; diagnoses follow after sample {ENOUGH}" if samples < ENOUGH else ""
    if samples == ENOUGH:
        outlook = "; the next sample shows the capacity of consumers that are behind"
    begin = (
        f"{plural(len(rows), 'group')}, worst first, after {plural(samples, 'sample')}{outlook}."
    )
    counts = [plural(count, f"{kind} group") for kind, count in others.items()]
    return f"{begin} Not listed: {listed(counts)}." if counts else begin


def as_lines(
    rows: Sequence[Row], missing: Sequence[Row], samples: int, others: Mapping[str, int]
) -> Iterator[str]:
    """Yield a survey in lines of 80 columns; long names and commands are not broken."""
    yield from _wrapped(lead(rows, samples, others), "", 0)
    for row in rows:
        yield ""
        yield f"{row['group']}: {row['diagnosis'] or row['state'] or 'unknown'}"
        for heading, text in facts(row):
            yield from _wrapped(text, f"  {heading:<13}", 15)
    yield ""
    yield "How clients could follow plans"
    for groups, text in advice(rows):
        yield from _wrapped(f"{groups}: {text}", "  ", 4)
    for right in missing:
        yield ""
        yield f"Describe is missing on {right['kind']} {right['name']}: {right['effect']}"
        yield f"  {right['remedy']}"


def _wrapped(text: str, begin: str, indent: int) -> list[str]:
    return wrap(
        visible(text),
        _WIDTH,
        initial_indent=begin,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_page(
    rows: Sequence[Row], missing: Sequence[Row], samples: int, others: Mapping[str, int]
) -> str:
    """Return a survey as an HTML document."""
    templates = environment("survey")
    templates.filters |= {"facts": facts, "late": _late, "catch_up_time": _catch_up_time}
    templates.globals["kind"] = kind
    return templates.get_template("survey.html").render(
        rows=rows, missing=missing, lead=lead(rows, samples, others), advice=advice(rows)
    )
