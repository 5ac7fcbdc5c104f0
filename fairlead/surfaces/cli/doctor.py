"""`fairlead doctor`: whether the set-up is right.

Belongs here: how findings are shown. Does not: what is looked at (`fairlead.surfaces.doctor`).
"""

from dataclasses import asdict
from typing import Annotated

import typer

from fairlead.surfaces.cli.arguments import Json
from fairlead.surfaces.cli.output import print_json, print_table, say


def doctor(
    *,
    skip: Annotated[
        list[str] | None,
        typer.Option(help="Leave out host, database, kafka or dagster; may be repeated."),
    ] = None,
    answers: Annotated[
        str | None, typer.Option(help="An address that has to answer, too: for health checks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say whether all that Fairlead needs is there, and what to do where it is not.

    Settings, Java, disk, Postgres, Kafka with each right that is missing, Dagster, and whether
    anything looks and plans. Nothing is changed. The exit code is 1 where something failed.
    """
    from fairlead.settings import load_settings
    from fairlead.surfaces.doctor import PARTS, answered, examine

    if unknown := set(skip or ()) - set(PARTS):
        raise typer.BadParameter(f"{', '.join(unknown)}: there are {', '.join(PARTS)}")
    found = list(examine(load_settings(), skip=skip or ()))
    if answers:
        found.append(answered(answers))
    failed = sum(finding.state == "failed" for finding in found)
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        print_table([asdict(finding) for finding in found], ("state", "name", "said"))
        say(*(f"{finding.name}: {finding.remedy}" for finding in found if finding.remedy))
    if failed:
        raise typer.Exit(1)
