"""`fairlead policy`: which policy decides on a group.

Belongs here: showing the explanation. Does not: finding it (`fairlead.domain.explanation`).
"""

from dataclasses import asdict
from typing import Any

import typer

from fairlead.surfaces.cli.arguments import Group, Json
from fairlead.surfaces.cli.output import as_text, epilog, print_json, print_table, say

app = typer.Typer(help="The policies of fairlead.toml.", no_args_is_help=True)


@app.command(epilog=epilog("policy explain orders", "policy explain orders --json"))
def explain(group: Group, *, as_json: Json = False) -> None:
    """Say which policy decides on a group and why, what holds, and what approval takes."""
    from fairlead.domain.explanation import explain as explain_policy
    from fairlead.settings import load_settings

    settings = load_settings()
    found = explain_policy(group, settings.policies, settings.discovery)
    if as_json:
        print_json(asdict(found))
        return
    say(f"{group}: {found.why}")
    if not found.planned:
        say("It is not planned: discovery excludes it.")
    if found.matches:
        print_table(
            [asdict(match) for match in found.matches],
            {"place": "[[policies]]", "pattern": "groups", "literals": "literal characters"},
        )
    print_table(
        [asdict(one) | {"value": _shown(one.value)} for one in found.values],
        ("key", "value", "source"),
    )
    say("Until a plan is published:")
    for condition in found.approval:
        say(f"  {condition}")


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(as_text, value)) or "none"
    return as_text(value)
