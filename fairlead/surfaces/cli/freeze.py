"""`fairlead freeze`, `fairlead unfreeze`: stop and resume sending new plans.

Belongs here: what these commands ask and print. Belongs elsewhere: what a freeze stops
(`fairlead.store.freezes`).
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
from fairlead.surfaces.cli.output import print_result, say
from fairlead.surfaces.cli.running_sandbox import ask

_One = Annotated[
    str | None,
    typer.Argument(help="A consumer group.", autocompletion=complete_group, callback=known_text),
]
_All = Annotated[bool, typer.Option("--all", help="All groups, including future ones.")]


def freeze(
    group: _One = None,
    *,
    every: _All = False,
    reason: Reason,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Stop publication of new plans of a group or, with --all, of all groups.

    Consumers keep following the plan they have, for weeks if necessary. Approved rollbacks are
    still sent. `fairlead plans withdraw` still works: consumers then use their fallback assignor.
    """
    from fairlead.store.freezes import freeze_plans

    what = _scope(group, every=every)
    ask(
        f"Freeze {what}? Until it is unfrozen, no new plan is sent, except approved rollbacks.",
        yes=yes,
    )
    with opened_engine() as engine:
        freeze_plans(engine, group, reason=reason)
    sentence = f"Frozen: {what}. No new plan is sent"
    print_result({"group": group, "frozen": True}, sentence, as_json=as_json)


def unfreeze(
    group: _One = None,
    *,
    every: _All = False,
    reason: Reason,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Resume publication of a group's plans or, with --all, end the freeze of all groups.

    Approved plans are then sent within 30 s. Groups that were frozen individually stay
    frozen with --all. If the group's newest plan needs a second person's approval (four_eyes), so
    does unfreezing the group.
    """
    from fairlead.store.freezes import read_freezes, unfreeze_plans

    what = _scope(group, every=every)
    ask(f"Unfreeze {what}? Approved plans are then sent.", yes=yes)
    with opened_engine() as engine:
        unfreeze_plans(engine, group, reason=reason)
        sentences = [
            str(freeze) for freeze in read_freezes(engine) if freeze.group in {None, group} or every
        ]
    print_result({"group": group, "frozen": False}, f"Unfrozen: {what}", as_json=as_json)
    say(*sentences, err=True)


def _scope(group: str | None, *, every: bool) -> str:
    if (group is None) is not every:
        raise typer.BadParameter("name one group, or give --all", param_hint="GROUP")
    return "all groups" if group is None else f"group {group}"
