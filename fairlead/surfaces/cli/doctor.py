"""`fairlead doctor`: whether the set-up is right.

Belongs here: how findings are shown. Does not: what is looked at (`fairlead.surfaces.doctor`).
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
        str | None, typer.Option(help="An address that has to answer, too: for health checks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say whether all that Fairlead needs is there, and what to do where it is not.

    A line for each thing as soon as it is known: settings, Java, disk, Postgres, Kafka with each
    right that is missing, Dagster, and whether anything looks and plans. Nothing is changed. The
    exit code is 1 where something failed.
    """
    from fairlead.settings import load_settings
    from fairlead.surfaces.doctor import PARTS

    if unknown := set(skip or ()) - set(PARTS):
        raise typer.BadParameter(f"{', '.join(unknown)}: there are {', '.join(PARTS)}")
    found: list[Finding] = []
    for finding in _findings(load_settings(), skip or (), answers):
        found.append(finding)
        if not as_json:
            say(f"{finding.state:<8} {finding.name}: {finding.said}")
            if finding.remedy:
                say(f"         {finding.remedy}")
    if as_json:
        print_json([asdict(finding) for finding in found])
    if any(finding.state == "failed" for finding in found):
        raise typer.Exit(1)


def _findings(
    settings: "Settings", skip: Collection[str], answers: str | None
) -> Iterator["Finding"]:
    """Yield what is found, and last whether the address that has to answer does."""
    from fairlead.surfaces.doctor import answered, examine

    yield from examine(settings, skip=skip)
    if answers:
        yield answered(answers)
