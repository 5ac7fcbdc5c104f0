"""`fairlead look`: looks at the planned groups without Dagster, once or as a service.

Belongs here: the loop and what it says. Does not: what a look is (`fairlead.looks`).
"""

import time
from typing import Annotated

import typer


def look(
    *, once: Annotated[bool, typer.Option("--once", help="Take one look and end.")] = False
) -> None:
    """Look at the offsets and owners of all planned groups, every `looks.every`, until Ctrl-C.

    Dagster's sensor group_looks does the same. Where both run, each leaves the other its looks.
    """
    from fairlead.errors import KafkaUnavailableError
    from fairlead.looks.archive import LookArchive
    from fairlead.looks.pace import due, now, told, wait_s
    from fairlead.looks.taking import look_once
    from fairlead.settings import load_settings

    settings = load_settings()
    archive = LookArchive(settings.warehouse_path)
    if once:
        typer.echo(told(look_once(archive, settings), settings.looks))
        return
    while True:
        last = archive.taken()
        if not due(last, settings.looks, now()):
            time.sleep(max(1.0, wait_s(last, settings.looks, now())))
            continue
        try:
            typer.echo(told(look_once(archive, settings), settings.looks))
        except KafkaUnavailableError as error:  # it may answer again: a service does not give up
            typer.echo(f"fairlead: {error}", err=True)
            time.sleep(settings.looks.every.total_seconds())
