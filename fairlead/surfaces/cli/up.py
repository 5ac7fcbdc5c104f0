"""`fairlead up`: run all parts of the planner on this machine, until Ctrl-C.

Belongs here: the command and its output. Belongs elsewhere: the parts (`fairlead.surfaces.up`).
"""

import signal
import sys
import threading
from contextlib import suppress
from typing import Annotated

import typer

from fairlead.surfaces.cli.arguments import read_settings
from fairlead.surfaces.cli.output import say
from fairlead.surfaces.ports import DAGSTER_PORT, PAGES_PORT


def up(
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Turn planning on; it stays on until turned off.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address of Dagster and the pages; neither asks for a login.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port of the pages.", min=1, max=65535)] = PAGES_PORT,
    dagster_port: Annotated[
        int, typer.Option(help="Port of Dagster.", min=1, max=65535)
    ] = DAGSTER_PORT,
) -> None:
    """Run the whole planner on this machine, until Ctrl-C.

    Runs Dagster, the pages and Spark, after the doctor's checks. Restarts parts that end, and
    writes one log. Groups are sampled, and planned if planning is on. The database needs the schema
    that `fairlead db upgrade` creates.
    """
    from fairlead.common.disk import room_in
    from fairlead.sandbox.recorded_processes import recorded
    from fairlead.surfaces.pipeline import dagster_home
    from fairlead.surfaces.up import At, check, require_free, running

    settings = read_settings()
    at = At(host, dagster_port, port)
    require_free(settings.state_dir, at, _tell)
    check(settings, _tell)
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(128 + signal.SIGHUP))  # the terminal closed
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
        _tell(planning)
        try:
            threading.Event().wait()
        finally:
            _tell("stopping")


def _tell(line: str) -> None:
    """Print a line of the log."""
    say(f"up        | {line}")
    sys.stdout.flush()
