"""`fairlead up`: everything of the planner on this machine, until Ctrl-C.

Belongs here: what is said before and after it runs. Does not: what runs (`fairlead.surfaces.up`).
"""

import signal
import sys
import threading
from contextlib import suppress
from typing import Annotated

import typer

from fairlead.surfaces.cli.output import say
from fairlead.surfaces.ports import DAGSTER_PORT, PAGES_PORT


def up(
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Turn planning on; it stays on until it is turned off.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Where Dagster and the pages listen; neither knows a user.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Of the pages.", min=1, max=65535)] = PAGES_PORT,
    dagster_port: Annotated[int, typer.Option(help="Of Dagster.", min=1, max=65535)] = DAGSTER_PORT,
) -> None:
    """Run Dagster, the pages, looks, Spark and what starts runs, until Ctrl-C ends all of it.

    What ends is started again. It begins with the doctor's list and is told in one log. Groups are
    looked at; they are planned where planning is on, and the schema is `fairlead db upgrade`'s.
    """
    from fairlead.common.disk import room_in
    from fairlead.sandbox.recorded_processes import recorded
    from fairlead.settings import load_settings
    from fairlead.surfaces.pipeline import dagster_home
    from fairlead.surfaces.up import At, check, require_free, running

    settings = load_settings()
    at = At(host, dagster_port, port)
    require_free(settings.state_dir, at, _tell)
    check(settings, _tell)
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(128 + signal.SIGHUP))  # its terminal is closed
    with (
        suppress(KeyboardInterrupt),
        room_in(settings.state_dir.absolute()),
        recorded(settings.state_dir, "fairlead up"),
        running(
            settings, dagster_home(settings), at, plan=plan, log=sys.stdout, tell=_tell
        ) as planning,
    ):
        _tell(f"Dagster  {at.dagster}")
        _tell(f"Pages    {at.pages}")
        _tell(str(planning))
        try:
            threading.Event().wait()
        finally:
            _tell("ending all of it")


def _tell(line: str) -> None:
    """Say a line of the log, as the parts have theirs."""
    say(f"up        | {line}")
    sys.stdout.flush()
