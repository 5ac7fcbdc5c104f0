"""`fairlead plans`: the versions of a group's plan, and their differences.

Belongs here: what these commands print. Belongs elsewhere: steps of a plan (`plan_steps`), queries
(`fairlead.store.history_queries`).
"""

import re
from pathlib import Path
from typing import Annotated

import typer

from fairlead.common.commands import shell_quote
from fairlead.domain.plan_states import State
from fairlead.surfaces.cli import plan_steps
from fairlead.surfaces.cli.arguments import (
    Group,
    Json,
    Limit,
    NewestVersion,
    Version,
    complete_group,
    known_text,
    opened_engine,
    read_settings,
)
from fairlead.surfaces.cli.groups import not_sent
from fairlead.surfaces.cli.output import epilog, print_json, print_table, say

app = typer.Typer(
    help="List, review, approve, publish, roll back and withdraw plans.",
    no_args_is_help=True,
)
app.add_typer(plan_steps.app)

_LIST = {
    "group": "group",
    "version": "version",
    "state": "state",
    "proposed_at": "proposed (UTC)",
    "decided_by": "decided by",
    "moved": "moved",
}
#: Maximum characters of a group's name in a file name. File systems allow 255 bytes, and a
#: character takes up to four.
_NAME = 50
_DIFF = ("topic", "partition", "member_before", "member_after")


@app.command(
    "list", epilog=epilog("plans list", "plans list orders", "plans list --state proposed --json")
)
def list_plans(
    group: Annotated[
        str | None,
        typer.Argument(
            help="Default: all groups.", autocompletion=complete_group, callback=known_text
        ),
    ] = None,
    *,
    state: Annotated[State | None, typer.Option(help="Only versions in this state.")] = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List versions, newest first."""
    from fairlead.store.history_queries import read_plans

    with opened_engine() as engine:
        rows = read_plans(engine, group, state=state, limit=limit)
    if as_json:
        print_json(rows)
    elif rows:
        print_table(rows, _LIST)
        say(*not_sent(rows))
    else:
        which = "".join((f" of {group}" if group else "", f" in state {state}" if state else ""))
        why = f"fairlead history {shell_quote(group)}" if group else "fairlead groups"
        say(f"There is no plan{which}; see `{why}` for the decisions")


@app.command(epilog=epilog("plans show orders", "plans show orders 7 --json"))
def show(
    group: Group,
    version: NewestVersion = None,
    *,
    as_json: Json = False,
) -> None:
    """Show a version: its reason, steps, balance, and each move with its reason."""
    from fairlead.store.history_queries import read_plan

    with opened_engine() as engine:
        plan = read_plan(engine, group, version)
    if as_json:
        print_json(plan)
        return
    plan_steps.print_plan(plan)
    columns = {"at": "at (UTC)", "state": "state", "actor": "actor", "reason": "reason"}
    print_table(plan["events"], columns, title="Life")


@app.command(epilog=epilog("plans diff orders 6 7", "plans diff orders 6 7 --json"))
def diff(group: Group, before: Version, after: Version, *, as_json: Json = False) -> None:
    """Show the partitions whose owner differs between two versions."""
    from fairlead.store.history_queries import read_diff

    with opened_engine() as engine:
        rows = read_diff(engine, group, before, after)
    if as_json:
        print_json({"group": group, "before": before, "after": after, "partitions": rows})
    elif rows:
        print_table(rows, _DIFF, title=f"{group}: version {before} to {after}")
    else:
        say(f"{group}: versions {before} and {after} give every partition the same owner")


@app.command(
    epilog=epilog(
        "plans review orders",
        "plans review orders 7 --output review.html",
        "plans review orders 7 --output - > review.html",
    )
)
def review(
    group: Group,
    version: NewestVersion = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file to write, `-` for standard output. Default: named after group and "
            "version, in the current directory.",
            allow_dash=True,
            dir_okay=False,
        ),
    ] = None,
) -> None:
    """Write the review of a version as one HTML file, with commands to approve or reject it.

    The file needs no network: attach it to a change request, or print it.
    """
    from fairlead.store.history_queries import read_plans
    from fairlead.surfaces.review import review_page

    settings = read_settings()
    with opened_engine() as engine:
        if version is None:
            version = next((row["version"] for row in read_plans(engine, group, limit=1)), None)
        page = review_page(
            engine,
            group,
            version,
            dagster_url=settings.web.dagster_url,
            policies=settings.policies,
        )
    if output == Path("-"):
        typer.echo(page)
        return
    safe = re.sub(r"[^\w.-]", "_", group)[:_NAME]
    path = output or Path(f"review-{safe}-{version}.html")
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--output") from error
    typer.echo(path)
