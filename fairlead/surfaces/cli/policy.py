"""`fairlead policy`: which policy decides on a group.

Belongs here: showing the explanation. Belongs elsewhere: computing it
(`fairlead.domain.explanation`).
"""

from dataclasses import asdict

import typer

from fairlead.common.words import as_text
from fairlead.surfaces.cli.arguments import Group, Json, known_groups, read_settings
from fairlead.surfaces.cli.output import epilog, print_json, print_table, say

app = typer.Typer(help="The policies of fairlead.toml.", no_args_is_help=True)


@app.command(epilog=epilog("policy explain orders", "policy explain orders --json"))
def explain(group: Group, *, as_json: Json = False) -> None:
    """Show which policy applies to a group, its values, and what approval of a plan requires."""
    from fairlead.domain.explanation import explain as explain_policy
    from fairlead.domain.policy import policy_for

    settings = read_settings()
    explanation = explain_policy(group, settings.policies, settings.discovery)
    if as_json:
        print_json(asdict(explanation))
        return
    say(f"{group}: {explanation.why}")
    if note := _unknown(group):
        say(note, err=True)
    if doubt := policy_for(group, settings.policies).doubt:
        say(f"Check this policy: {doubt}.")
    if not explanation.planned:
        say("This group is not planned: discovery excludes it.")
    if explanation.matches:
        print_table(
            [asdict(match) for match in explanation.matches],
            {"place": "[[policies]]", "pattern": "groups", "literals": "literal characters"},
        )
    say("Before a plan is published:")
    for condition in explanation.approval:
        say(f"  {condition}")
    say("Values and their sources:")
    for value in explanation.values:
        values = value.value if isinstance(value.value, list | tuple) else [value.value]
        say(f"  {value.key} = {', '.join(map(as_text, values)) or 'none'} ({value.source})")


def _unknown(group: str) -> str:
    """Return a note if the group was never sampled or perhaps does not exist; otherwise ""."""
    from fairlead.common.nearest import hint

    known = known_groups()
    if group in known:
        return ""
    if not known:
        return (
            f"Whether the group {group} exists is unknown: the database does not answer, or no "
            "group has been sampled"
        )
    advice = hint(group, known, "`fairlead groups` lists the sampled groups")
    return f"{group} was never sampled{advice}"
