"""A group's own page: what is the matter and since when, what was decided, who owned what.

Belongs here: which readings the page shows, and how much of each. Does not: the readings
(`fairlead.store.course`), a version's review (`fairlead.surfaces.review`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import Any, Final

from sqlalchemy import Engine

from fairlead.common.words import length, number, percent
from fairlead.domain.cohorts import cohort_of
from fairlead.domain.course import NOBODY, Change, Seen, changes, lag_by
from fairlead.domain.groups import advice_in
from fairlead.domain.policy import Policy, policy_for
from fairlead.errors import PlanStateError
from fairlead.store import course, reading
from fairlead.surfaces import plots
from fairlead.surfaces.links import asset_url
from fairlead.surfaces.standing import next_step
from fairlead.surfaces.web.layout import TEMPLATES, ages

#: Rows of a table; commands give the rest.
ROWS: Final = 50
#: Of a minute, an hour, a day: what lengths of time are written in.
_TIMES_S: Final = (60.0, 3600.0, 86_400.0)
#: So many partitions are offered to choose from.
OFFERED: Final = 500
#: More strips than that are no picture.
STRIPS: Final = 24


@dataclass(frozen=True)
class Asked:
    """What of a group is asked for beside the page itself.

    Parameters
    ----------
    partition
        "topic-number": what happened to it is shown; "": nothing.
    before, after
        Two versions: their difference is shown; None: nothing.
    """

    partition: str = ""
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True)
class Plot:
    """A plot with the table beside it: a row a line, its newest value and its largest, with when.

    `missing` says how many lines are not drawn.
    """

    name: str
    svg: str
    rows: Sequence[tuple[str, str, str, datetime | None]]
    missing: int = 0


def group_page(
    engine: Engine,
    group: str,
    asked: Asked,
    *,
    dagster_url: str | None = None,
    policies: Sequence[Policy] = (),
    now: datetime | None = None,
) -> str:
    """Return a group's page as an HTML document.

    Parameters
    ----------
    engine
        Fairlead's database; `fairlead_reader` will do.
    group
        The consumer group.
    asked
        What is shown beside it.
    dagster_url
        Where the Dagster UI is reached; None: there is no link to it.
    policies
        From the settings.
    now
        Time-zone-aware: what ages are told by; None: the clock.

    Raises
    ------
    GroupError
        Nothing is stored of the group.
    PlanStateError
        It has not both of the versions that are asked for.
    """
    read_at = now or datetime.now(UTC)
    diagnoses = course.read_diagnoses(engine, group, limit=ROWS)
    (row,) = reading.read_groups(engine, [group])
    policy = policy_for(group, policies)
    seen = course.read_seen(engine, group)
    changed = changes(seen)
    partitions = sorted({one.partition for one in seen})
    return TEMPLATES.get_template("group.html").render(
        row=row,
        before=diagnoses[1] if len(diagnoses) > 1 else None,
        diagnoses=diagnoses,
        advice=advice_in(row["evidence"]),
        next_step=next_step(row, reading.undecided([row], read_at)),
        policy=policy,
        plots=[
            *_balance(course.read_balance(engine, group), policy),
            *_lag(seen),
            *_days(course.read_days(engine, group)),
        ],
        strip=_strip(seen, changed),
        snapshots=len({one.at for one in seen}),
        changes=changed,
        versions=reading.read_plans(engine, group, limit=ROWS),
        difference=_difference(engine, group, asked),
        asked=asked,
        moves=course.read_moves_of(engine, group, asked.partition, limit=ROWS)
        if asked.partition
        else [],
        owned=_owned(changed, asked.partition),
        partitions=partitions[:OFFERED],
        strips=min(len(partitions), STRIPS),
        partition_total=len(partitions),
        measured=asked.partition in partitions,
        history=reading.read_history(engine, group, limit=ROWS),
        adoption=course.read_adoption(engine, group),
        dagster=asset_url(dagster_url, "assignment_plan", cohort_of(group, policies)),
        age=ages(read_at),
        rows=ROWS,
        now=read_at,
    )


def _balance(rows: Sequence[Mapping[str, Any]], policy: Policy) -> list[Plot]:
    at = [row["measured_at"] for row in rows]
    late = {
        "forecast": [row["late_s"] for row in rows],
        "objective": [policy.objective.total_seconds()] * len(rows),
    }
    used = {"fullest consumer": [row["utilisation"] for row in rows]}
    heaviest = {"heaviest consumer": [float(row["lag_max"]) for row in rows]}
    return [
        *_plot("Utilisation", at, used, percent),
        *_plot("Lateness, forecast", at, late, length),
        *_plot("Records behind, heaviest consumer", at, heaviest, number),
    ]


def _lag(seen: Sequence[Seen]) -> list[Plot]:
    most = len(plots.COLOURS)
    found = []
    for what, name in (("owner", "consumer"), ("partition", "partition")):
        at, lags, count = lag_by(seen, what, most=most)  # type: ignore[arg-type]
        found += _plot(f"Records behind, by {name}", at, lags, number, count - len(lags))
    return found


def _days(rows: Sequence[Mapping[str, Any]]) -> list[Plot]:
    """Return the days, of which one alone says nothing that the other plots do not."""
    if len(rows) < 2:  # noqa: PLR2004 - two make a line
        return []
    at = [datetime.combine(row["day"], time(), UTC) for row in rows]
    worst = {"worst of the day": [row["late_s_worst"] for row in rows]}
    return _plot("Lateness by the day, forecast", at, worst, length)


def _plot(
    name: str,
    at: Sequence[datetime],
    series: Mapping[str, Sequence[float | None]],
    written: Callable[[float], str],
    missing: int = 0,
) -> list[Plot]:
    """Return a plot, or none where nothing is known."""
    if not any(one is not None for values in series.values() for one in values):
        return []
    rows = []
    for line, values in series.items():
        known = [(one, when) for one, when in zip(values, at, strict=True) if one is not None]
        most, when = max(known, default=(None, None), key=lambda pair: pair[0])
        newest = "none" if values[-1] is None else written(values[-1])
        rows.append((line, newest, "unknown" if most is None else written(most), when))
    units = _TIMES_S if written is length else ()
    svg = plots.over_time(at, series, f"{name}, over time", written, units)
    return [Plot(name, svg, rows, missing)]


def _strip(seen: Sequence[Seen], changed: Sequence[Change]) -> str | None:
    """Draw who owned what; of many partitions, those that changed hands most often."""
    if not seen:
        return None
    at = sorted({one.at for one in seen})
    place = {moment: index for index, moment in enumerate(at)}
    owners: dict[str, list[str | None]] = {}
    for one in seen:
        owners.setdefault(one.partition, [None] * len(at))[place[one.at]] = one.member
    moves = Counter(name for change in changed for name, *_ in change.moved)
    shown = set(sorted(owners, key=lambda name: -moves[name])[:STRIPS])
    picked = {name: of for name, of in owners.items() if name in shown}
    return plots.owners_over_time(at, picked, "Who owned which partition, over time")


def _owned(changed: Sequence[Change], partition: str) -> list[tuple[Change, str, str]]:
    """Return when the owner of a partition was seen to change."""
    return [
        (change, before, after)
        for change in changed
        for name, before, after in change.moved
        if name == partition
    ]


def _difference(engine: Engine, group: str, asked: Asked) -> list[reading.Row] | None:
    """Return the partitions whose owner differs between two versions; None: none are asked for."""
    if asked.before is None or asked.after is None:
        return None
    for version in (asked.before, asked.after):
        if not reading.read_plans(engine, group, version=version, limit=1):
            raise PlanStateError(f"group {group} has no version {version}")
    rows = reading.read_diff(engine, group, asked.before, asked.after)
    return [
        row | {name: row[name] or NOBODY for name in ("member_before", "member_after")}
        for row in rows
    ]
