"""`fairlead brake`, `fairlead release`: no new plan goes out, and plans go out again.

Belongs here: what these commands ask and say. Does not: the brake (`fairlead.store.brakes`).
"""

from typing import Annotated

import typer

from fairlead.surfaces.cli.arguments import (
    Json,
    Reason,
    Yes,
    complete_group,
    known_text,
    opened_engine,
)
from fairlead.surfaces.cli.output import print_json, say
from fairlead.surfaces.cli.running_sandbox import ask

_One = Annotated[
    str | None,
    typer.Argument(help="A consumer group.", autocompletion=complete_group, callback=known_text),
]
_All = Annotated[bool, typer.Option("--all", help="All groups, those of later on among them.")]


def brake(
    group: _One = None,
    *,
    every: _All = False,
    reason: Reason,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Let no new version go out, of a group or of all, until the brake is released.

    What is followed now is followed on, for weeks if need be. A rollback goes out all the same, and
    `fairlead plans withdraw` gives a group back to its fallback.
    """
    from fairlead.store.brakes import put_on

    what = _what(group, every=every)
    then = "Until it is released, no new plan goes out, except approved rollbacks."
    ask(f"Put the brake on {what}? {then}", yes=yes)
    with opened_engine() as engine:
        put_on(engine, group, reason=reason)
    _say(group, f"The brake holds {what}: no new plan goes out", braked=True, as_json=as_json)


def release(
    group: _One = None,
    *,
    every: _All = False,
    reason: Reason,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Release the brake of a group, or, with --all, the brake of all groups.

    Approved plans go out within 30 s. A group's own brake holds on when that of all groups is
    released. Where plans need four eyes, so does this.
    """
    from fairlead.store.brakes import read_brakes
    from fairlead.store.brakes import release as let_go

    what = _what(group, every=every)
    ask(f"Release the brake of {what}? Approved plans go out then.", yes=yes)
    with opened_engine() as engine:
        let_go(engine, group, reason=reason)
        left = [str(held) for held in read_brakes(engine) if held.group in {None, group} or every]
    _say(group, f"The brake of {what} is released", braked=False, as_json=as_json)
    say(*left, err=True)


def _what(group: str | None, *, every: bool) -> str:
    if (group is None) is not every:
        raise typer.BadParameter("name one group, or give --all", param_hint="GROUP")
    return "all groups" if group is None else f"group {group}"


def _say(group: str | None, words: str, *, braked: bool, as_json: bool) -> None:
    if as_json:
        print_json({"group": group, "braked": braked})
    else:
        say(words)
