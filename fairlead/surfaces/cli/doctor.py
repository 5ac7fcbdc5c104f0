"""`fairlead doctor`: whether the set-up is right.

Belongs here: how findings are printed. Does not: the checks (`fairlead.surfaces.doctor`).
"""

from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.surfaces.cli.arguments import Json
from fairlead.surfaces.cli.output import print_json, say

if TYPE_CHECKING:
    from fairlead.settings import Settings
    from fairlead.surfaces.doctor import Finding


def doctor(
    *,
    skip: Annotated[
        list[str] | None,
        typer.Option(help="Leave out host, archive, database, kafka or dagster; may be repeated."),
    ] = None,
    answers: Annotated[
        str | None, typer.Option(help="Also check that this address answers: for health checks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check all that Fairlead needs, and suggest remedies for what fails.

    Checks settings, Java, disk, Postgres, Kafka with each missing right, Dagster, and whether
    sampling and planning are on. Nothing is changed. The exit code is 1 if a check failed.
    """
    from fairlead.settings import load_settings
    from fairlead.surfaces.doctor import PARTS

    if unknown := set(skip or ()) - set(PARTS):
        raise typer.BadParameter(f"{', '.join(unknown)}: there are {', '.join(PARTS)}")
    found: list[Finding] = []
    for finding in _findings(load_settings(), skip or (), answers):
        found.append(finding)
        if not as_json:
            say(f"{finding.state:<8} {finding.name}: {finding.detail}")
            if finding.remedy:
                say(f"         {finding.remedy}")
    if as_json:
        print_json([asdict(finding) for finding in found])
    if any(finding.state == "failed" for finding in found):
        raise typer.Exit(1)


def _findings(
    settings: "Settings", skip: Collection[str], answers: str | None
) -> Iterator["Finding"]:
    """Yield the findings; the last is about the address, if one is given."""
    from fairlead.surfaces.doctor import answered, examine

    yield from examine(settings, skip=skip)
    if answers:
        yield answered(answers)
