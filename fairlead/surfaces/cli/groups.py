"""`fairlead groups`, `why`, `lag`, `history`: the state of consumer groups.

Belongs here: what these commands show. Belongs elsewhere: the queries (`fairlead.store`).
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlead.common.words import as_text, catch_up_time, length, listed
from fairlead.domain.advice import advice_in
from fairlead.domain.diagnoses import NO_MEMBERS
from fairlead.domain.figures import figure
from fairlead.domain.history import THINNED_TO
from fairlead.domain.work_text import time_per_record, work_of_group
from fairlead.domain.worst_first import worst_first
from fairlead.errors import GroupError
from fairlead.surfaces.cli.arguments import (
    At,
    Group,
    Json,
    Limit,
    Since,
    known_text,
    opened_engine,
)
from fairlead.surfaces.cli.output import print_json, print_table, say
from fairlead.surfaces.next_step import follows, kind, next_step, why_no_sample
from fairlead.surfaces.offers import of_freeze, of_hot_partitions

if TYPE_CHECKING:
    from fairlead.store.freezes import Freeze
    from fairlead.store.monitoring import SampleAge

_GROUPS = {
    "group": "group",
    "diagnosis": "diagnosis",
    "behind_now_s": "behind",
    "forecast_time_lag_s": "forecast",
    "catch_up_time": "caught up",
    "follows": "follows",
    "next": "next",
}
#: Maximum number of groups for which the reasons of the diagnosis are shown, worst first.
_WITH_EVIDENCE = 10
#: Figures older than this get a warning. By default, samples are taken every minute.
_OLD = timedelta(minutes=5)
_OLD_LAG = THINNED_TO + _OLD
#: `lag` shows when lag was measured and, for measurements younger than this, also their age.
_DAY = timedelta(days=1)
_LAG = {
    "name": "partition",
    "member": "member",
    **dict.fromkeys(("lag", "time_lag_s", "arrival_rate"), ""),
    "takes": "per record",
    "time_share": "share",
    "status": "status",
}
_SPEED = ("arrival_rate", "busy", "records_per_s", "measured")
_LAG_BY_MEMBER = ("member", "partitions", "lag", *_SPEED)
_LAG_BY_TOPIC = ("topic", "partitions", "lag", "arrival_rate", "seconds_per_record", "time_share")
#: Maximum number of diagnoses, and of moves, that `why` shows, newest first.
_DIAGNOSES = 50
_MOVES_OF = {
    "version": "version",
    "state": "state",
    "published_at": "published (UTC)",
    "previous_member": "from",
    "member": "to",
    "reason": "why",
}
_HISTORY = {
    "at": "at (UTC)",
    "event": "event",
    "version": "version",
    "actor": "actor",
    "reason": "reason",
}


def groups(*, as_json: Json = False) -> None:
    """List groups with diagnosis and next step, worst first."""
    from fairlead.store.freezes import read_freezes
    from fairlead.store.history_queries import read_groups, undecided
    from fairlead.store.monitoring import last_sample
    from fairlead.store.regressions import back_offs

    with opened_engine() as engine:
        rows, freezes = worst_first(read_groups(engine)), read_freezes(engine)
        resting, last = back_offs(engine), last_sample(engine)
    now = datetime.now(UTC)
    waits = undecided(rows, now)
    if as_json:
        print_json(rows)
    elif rows:
        print_table(
            [
                row
                | _forecast(row)
                | {"follows": follows(row), "next": next_step(row, waits, resting)}
                for row in rows
            ],
            _GROUPS,
        )
        say(*_evidence(rows))
        say(*_advice(rows), *not_sent(rows), *_not_sampled(rows, now, last))
        say(*_not_planned(waits), *_frozen(freezes), *map(str, resting.values()))
    else:
        say(
            "No group has been sampled or planned yet. `fairlead up` samples groups; `fairlead "
            "plan GROUP` plans one group now; `fairlead up --plan` turns planning on"
        )


def _advice(rows: list[dict[str, Any]]) -> list[str]:
    """Return advice for groups that do not follow plans, in one line per kind of group."""
    about: dict[str, list[str]] = {}
    for row in rows:
        if advice := advice_in(row["evidence"]):
            about.setdefault(advice, []).append(row["group"])
    return [
        f"{groups[0] if len(groups) == 1 else f'{len(groups)} groups, {groups[0]} among them'}: "
        f"{advice}"
        for advice, groups in about.items()
    ]


def _forecast(row: dict[str, Any]) -> dict[str, Any]:
    """Return columns to replace in a row of the table of groups: the catch-up time as text.

    If the diagnosis is unknown, return None for all columns of the forecast.
    """
    if row["diagnosis"] in {None, "unknown"}:
        return dict.fromkeys(("behind_now_s", "forecast_time_lag_s", "catch_up_time"))
    return {"catch_up_time": catch_up_time(row["catch_up_s"], row["last_seen"])}


def _evidence(rows: list[dict[str, Any]]) -> list[str]:
    """Return the reasons for the worst diagnoses, and why a group has no diagnosis yet."""
    bad = [row for row in rows if kind(row["diagnosis"]) == "bad"]
    lines = [f"{row['group']}: {row['evidence']}" for row in bad[:_WITH_EVIDENCE]]
    if more := len(bad) - len(lines):
        lines.append(f"{more:,} more have problems: see `fairlead why GROUP`")
    if unknown := [row for row in rows if row["diagnosis"] == "unknown"]:
        names = listed([row["group"] for row in unknown], at_most=1)
        lines.append(f"{names}: {unknown[0]['evidence']}")
    return lines


def _catch_up_time(row: dict[str, Any]) -> str:
    """Describe when the group will have no backlog, without and with the plan to be approved."""
    without_plan = f"without a new plan: {catch_up_time(row['catch_up_s'], row['last_seen'])}"
    if row["planned_at"] is None:
        return without_plan
    planned = catch_up_time(row["catch_up_planned_s"], row["planned_at"])
    return f"{without_plan}; with version {row['waiting']}: {planned}"


def not_sent(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each plan that could not be sent: the reason, and the next attempt.

    Parameters
    ----------
    rows
        Rows of `fairlead.store.history_queries.read_groups` or `read_plans`.
    """
    return [
        f"{row['group']}: version {row.get('not_sent_version') or row['version']} could not be "
        f"sent at {as_text(row['not_sent_at'])} UTC: {row['not_sent']}; the next attempt is at "
        f"{as_text(row['sent_again_at'])} UTC"
        for row in rows
        if row["not_sent"]
    ]


def _frozen(freezes: Iterable["Freeze"]) -> list[str]:
    """Return a line for each freeze, with the command that ends it."""
    return [
        f"{freeze}. No new plan is sent until `{of_freeze(freeze.group, frozen=True).command}`"
        for freeze in freezes
    ]


def _not_planned(names: list[str]) -> list[str]:
    """Return advice for groups that need a plan although no planning run has decided on them."""
    if not names:
        return []
    line = (
        f"{listed(names)}: a plan may help, and no planning run has decided for half an hour. "
        "Planning may be off. To turn it on, turn on planning_sensor or planning_schedule in "
        "Dagster under Automation, or run `fairlead up --plan`"
    )
    return [line]


def _not_sampled(rows: list[dict[str, Any]], now: datetime, last: "SampleAge | None") -> list[str]:
    """Return a line that names the groups with members but no recent sample, and the reason."""
    old = [
        row
        for row in rows
        if row["last_seen"] and now - row["last_seen"] > _OLD and row["evidence"] != NO_MEMBERS
    ]
    if not old:
        return []
    names, newest = listed([row["group"] for row in old]), max(row["last_seen"] for row in old)
    line = f"{names}: no sample since {as_text(newest)} UTC: these figures are old. "
    return [line + why_no_sample(last)]


def lag(
    group: Group,
    *,
    at: At = None,
    by_member: Annotated[
        bool,
        typer.Option("--by-member", help="One row per consumer, with sums over its partitions."),
    ] = False,
    by_topic: Annotated[
        bool, typer.Option("--by-topic", help="One row per topic, with sums over its partitions.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(help="Show at most this many partitions, those furthest behind.", min=1),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the lag of each partition of a group, as last measured.

    Consumers that follow plans report the time per record: "41 ms (38 to 44)" is the mean and the
    90 % interval. For other consumers, this time is inferred: "about 8 x usual". "Share" is the
    part of the consumer's time that the partition's arriving records take. Lag is stored each
    quarter of an hour, when owners change, and by planning runs. The status "left" marks topics
    that no member subscribes to; sums exclude them.
    """
    from fairlead.store.lag_queries import read_lag, read_lag_by_member, read_lag_by_topic
    from fairlead.store.monitoring import last_sample

    read: Callable[..., list[dict[str, Any]]] = read_lag
    columns: Mapping[str, str] | tuple[str, ...] = _LAG
    if by_member and by_topic:
        raise typer.BadParameter("use --by-member or --by-topic, not both")
    if by_member:
        read, columns = read_lag_by_member, _LAG_BY_MEMBER
    elif by_topic:
        read, columns = read_lag_by_topic, _LAG_BY_TOPIC
    with opened_engine() as engine:
        rows, last = read(engine, group, at=at, limit=limit), last_sample(engine)
    if not rows:
        raise GroupError(
            f"group {group}: no lag is stored"
            + (
                " from before then"
                if at
                else " yet: it is measured after members begin to read; see `fairlead groups`"
            )
        )
    if as_json:
        print_json(rows)
        return
    measured_at = rows[0]["snapshot_at"]
    age = datetime.now(UTC) - measured_at
    title = f"{group}, {as_text(measured_at)} UTC"
    if age < _DAY:
        title += f", {length(age)} ago"
    labelled = [
        row
        | {"name": f"{row['topic']}-{row['partition']}", "takes": time_per_record(row)}
        | ({"status": "left"} if row["has_left"] else {})
        for row in (rows if columns is _LAG else [])
    ]
    print_table(labelled or rows, columns, title=title)
    say(*_losses(rows))
    if not at and not any(row.get("busy") or row.get("seconds_per_record") for row in rows):
        say("The time per record is unknown: these consumers do not report it")
    if at is None and age > _OLD_LAG:
        say(
            f"{group}: this lag is more than {_OLD_LAG.seconds // 60} minutes old. "
            + why_no_sample(last),
            err=True,
        )


def _losses(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return a line for each partition in which the group has lost records."""
    return [
        f"{row['topic']}-{row['partition']}: {row['lost']:,} records were deleted before the group "
        f"read them; first seen at {as_text(row['lost_at'])} UTC"
        for row in rows
        if row.get("lost")
    ]


def history(group: Group, *, since: Since = None, limit: Limit = 50, as_json: Json = False) -> None:
    """Show the decisions on a group and the steps of its plans, newest first."""
    from fairlead.store.event_queries import read_history

    with opened_engine() as engine:
        rows = read_history(engine, group, since=since, limit=limit)
    if as_json:
        print_json(rows)
    elif rows:
        print_table(rows, _HISTORY)
    else:
        say(
            f"{group}: nothing happened"
            + (" since then" if since else " yet: no planning run has decided on this group")
        )


def why(
    group: Group,
    partition: Annotated[
        str | None,
        typer.Argument(help="A partition of the group, such as orders-7.", callback=known_text),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Explain the state of a group, or the owner of a partition.

    For a group: diagnosis, evidence, plan and next step. For a partition: time per record, and the
    plan versions that moved the partition, with the old owner, the new owner and the reason.
    """
    from fairlead.store.group_history import read_diagnoses
    from fairlead.store.history_queries import read_groups, undecided
    from fairlead.store.regressions import back_offs

    with opened_engine() as engine:
        diagnoses = read_diagnoses(engine, group, limit=_DIAGNOSES)
        (row,) = read_groups(engine, [group])
        resting = back_offs(engine, [group])
        moves, now = ([], None) if partition is None else _moves_of(engine, group, partition)
    if as_json:
        of_partition = {} if partition is None else {"moves": moves, "now": now}
        print_json(row | {"diagnoses": diagnoses} | of_partition)
        return
    if partition is None:
        step = next_step(row, undecided([row], datetime.now(UTC)), resting)
        lines = [*_why(row, diagnoses), *(f"  {line}" for line in resting.values())]
        keys = of_hot_partitions(group, row["diagnosis"], row["names"] or ())
        say(*lines, f"  next: {step}", *(f"  its keys: `{command}`" for command in keys))
        return
    if moves:
        print_table(moves, _MOVES_OF, title=f"{partition} of {group}: moves")
    else:
        say(f"{group}: no stored version of the plan moves {partition}")
    if now and (takes := time_per_record(now)):
        share = now["time_share"]
        who = f"{now['member']} takes" if now["member"] else "no owner:"
        of_time = figure("time_share").text(share)
        of_all = (
            "" if share is None else f"; the arriving records take {of_time} of one consumer's time"
        )
        say(f"{who} {takes} for a record of {partition}{of_all}")


def _moves_of(
    engine: Any, group: str, partition: str
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the moves of a partition by plans, and the partition's lag (None: unknown).

    Raises
    ------
    GroupError
        There is no such partition.
    """
    from fairlead.store.group_history import read_moves_of
    from fairlead.store.lag_queries import read_lag

    moves = read_moves_of(engine, group, partition, limit=_DIAGNOSES)
    known = {f"{row['topic']}-{row['partition']}": row for row in read_lag(engine, group)}
    if not moves and known and partition not in known:
        raise GroupError(
            f"group {group} reads no partition {partition}; a valid name is {min(known)}"
        )
    return moves, known.get(partition)


def _why(row: dict[str, Any], diagnoses: list[dict[str, Any]]) -> list[str]:
    """Return lines about a group: diagnosis, figures, and the plan; not the next step."""
    name = row["group"]
    lines = []
    if not diagnoses:
        lines.append(f"{name}: not analysed yet")
    else:
        before = f"; before: {diagnoses[1]['diagnosis']}" if len(diagnoses) > 1 else ""
        since, sampled = as_text(row["since"]), as_text(row["last_seen"])
        lines.append(
            f"{name}: {row['diagnosis']} since {since} UTC, last seen {sampled} UTC{before}"
        )
        lines.append(f"  {row['evidence']}")
        if row["diagnosis"] != "unknown":
            figures_of = (
                figure(name) for name in ("behind_now_s", "forecast_time_lag_s", "utilisation")
            )
            figures = (f"{each.label.lower()}: {each.text(row[each.name])}" for each in figures_of)
            lines.append(f"  {'; '.join(figures)}; caught up {_catch_up_time(row)}")
            lines.append(f"  {row['consumers_why']}")
        lines += [
            f"  {label.lower()}: {text}"
            for label, text in work_of_group(diagnoses[0]["reported"]).items()
        ]
    if row["published"] is not None:
        lines.append(f"  plan: version {row['published']} is published; followed: {follows(row)}")
    if row["waiting"]:
        lines.append(f"  plan: version {row['waiting']}, {row['waiting_state']}")
    if row["outcome"] is not None:
        lines.append(
            f"  last decision: {row['outcome']}, {as_text(row['decided_at'])} UTC: {row['reason']}"
        )
    lines += [f"  {line}" for line in not_sent([row])]
    return lines
