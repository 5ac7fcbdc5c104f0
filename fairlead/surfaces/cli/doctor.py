"""`fairlead doctor`: check the installation.

Belongs here: how findings are printed. Belongs elsewhere: the checks (`fairlead.surfaces.doctor`).
"""

from dataclasses import asdict
from itertools import chain
from typing import Annotated

import typer

from fairlead.surfaces.cli.arguments import Json, read_settings
from fairlead.surfaces.cli.output import print_json, say


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
    """Check the installation; suggest remedies.

    Checks settings, Java, disk, Postgres, Kafka, Dagster, and whether sampling and planning are on.
    Lists missing Kafka rights. Changes nothing. The exit code is 1 if a check failed.
    """
    from fairlead.surfaces.doctor import PARTS, answered, examine

    if unknown := set(skip or ()) - set(PARTS):
        raise typer.BadParameter(f"{', '.join(unknown)}: the parts are {', '.join(PARTS)}")
    findings = []
    examined = examine(read_settings(), skip=skip or ())
    for finding in chain(examined, map(answered, filter(None, [answers]))):
        findings.append(finding)
        if not as_json:
            say(f"{finding.state:<8} {finding.name}: {finding.detail}")
            if finding.remedy:
                say(f"         {finding.remedy}")
    if as_json:
        print_json([asdict(finding) for finding in findings])
    if any(finding.state == "failed" for finding in findings):
        raise typer.Exit(1)
