"""`fairlead groups`, `fairlead lag`, `fairlead history`: what goes on in consumer groups.

Belongs here: what these commands show. Does not: their queries (`fairlead.store.reading`).
"""

from typing import Annotated, Any

import typer

from fairlead.surfaces.cli.arguments import At, Group, Json, Limit, Since, opened_engine
from fairlead.surfaces.cli.output import as_text, print_json, print_table, say

_GROUPS = {
    "group": "group",
    "diagnosis": "diagnosis",
    "late": "late",
    "fullest": "fullest",
    "published": "published",
    "adherence": "adherence",
    "waiting": "waits",
    "waiting_state": "as",
    "outcome": "last decision",
    "decided_at": "at (UTC)",
    "lag_max": "heaviest member",
}
_LAG = ("topic", "partition", "member", "lag", "time_lag_s", "arrival_rate", "status")
_LAG_BY_MEMBER = ("member", "partitions", "lag")
_HISTORY = {
    "at": "at (UTC)",
    "event": "event",
    "version": "version",
    "actor": "actor",
    "reason": "reason",
}


def groups(*, as_json: Json = False) -> None:
    """List the groups: what is the matter, how late they get, which plan they follow."""
    from fairlead.store.reading import read_groups

    with opened_engine() as engine:
        rows = read_groups(engine)
    if as_json:
        print_json(rows)
    elif rows:
        print_table([row | _forecast(row) for row in rows], _GROUPS)
        say(*_advice(rows))
    else:
        say(
            "No group has been planned yet: `python -m orchestration planning GROUP` plans one, "
            "the schedule planning_schedule all of them"
        )


def _advice(rows: list[dict[str, Any]]) -> list[str]:
    """Return what is to be done about groups that do not follow, a line for all of whom it is."""
    from fairlead.domain.groups import advice_in

    about: dict[str, list[str]] = {}
    for row in rows:
        if advice := advice_in(row["evidence"]):
            about.setdefault(advice, []).append(row["group"])
    return [
        f"{groups[0] if len(groups) == 1 else f'{len(groups)} groups, {groups[0]} among them'}: "
        f"{advice}"
        for advice, groups in about.items()
    ]


def _forecast(row: dict[str, Any]) -> dict[str, str | None]:
    """Return a group's forecast as people read it; none where too little is known for one."""
    from fairlead.common.words import length

    if row["diagnosis"] in {None, "unknown"}:
        return {"late": None, "fullest": None}
    return {"late": length(row["late_s"]), "fullest": f"{row['utilisation']:.0%}"}


def lag(
    group: Group,
    *,
    at: At = None,
    by_member: Annotated[
        bool, typer.Option("--by-member", help="Add up what each member has to work off.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="Show so many at most, those behind most.", min=1)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how far behind a group is, partition by partition, as last measured."""
    from fairlead.errors import GroupError
    from fairlead.store.reading import read_lag, read_lag_by_member

    with opened_engine() as engine:
        rows = (read_lag_by_member if by_member else read_lag)(engine, group, at=at, limit=limit)
    if not rows:
        raise GroupError(
            f"group {group}: no lag was measured"
            + (" until then" if at else f"; `fairlead history {group}` says why")
        )
    if as_json:
        print_json(rows)
        return
    title = f"{group}, {as_text(rows[0]['snapshot_at'])} UTC"
    print_table(rows, _LAG_BY_MEMBER if by_member else _LAG, title=title)


def history(group: Group, *, since: Since = None, limit: Limit = 50, as_json: Json = False) -> None:
    """Show what happened to a group, the newest first, decisions to change nothing included."""
    from fairlead.store.reading import read_history

    with opened_engine() as engine:
        rows = read_history(engine, group, since=since, limit=limit)
    if as_json:
        print_json(rows)
    elif rows:
        print_table(rows, _HISTORY)
    else:
        say(f"{group}: nothing happened since then")
