"""`fairlead spark`: start and stop one Spark server for all planning runs on this machine.

Belongs here: commands that call `fairlead.sandbox.spark`. Belongs elsewhere: how the server is run.
"""

import logging
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.surfaces.cli.arguments import read_settings
from fairlead.surfaces.cli.output import epilog, say, say_error

if TYPE_CHECKING:
    from fairlead.sandbox.spark import SparkServer

_log = logging.getLogger(__name__)

app = typer.Typer(
    help="Keep a Spark server running on this machine.",
    no_args_is_help=True,
)


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog=epilog("spark up", "spark up -- dagster api grpc"),
)
def up(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="Command to run afterwards, even if Spark failed to start."),
    ] = None,
) -> None:
    """Start Spark and keep it running until `fairlead spark down`.

    Every planning run with the same state directory then uses this Spark automatically. A Spark
    that already runs is replaced if its code or properties are out of date, or if it does not
    answer.
    """
    from fairlead.common.disk import room_in
    from fairlead.errors import FairleadError

    try:
        with room_in("the state directory"):
            started = _server().start()
            say(f"Spark runs at localhost:{started.port}, process {started.pid}")
    except Exception as error:
        if not command:
            raise
        if isinstance(error, FairleadError):
            say_error(error)
        else:
            _log.exception("Spark could not be started; continuing with %s", command[0])
    if command:
        os.execvp(command[0], command)  # noqa: S606 - the user's command, without a shell


@app.command(epilog=epilog("spark down"))
def down() -> None:
    """Stop Spark, even if another command started it. Planning runs then start their own Spark."""
    _server().stop()


@app.command(epilog=epilog("spark status"))
def status() -> None:
    """Report whether Spark runs and answers a query; the exit code is 1 if not."""
    server = _server()
    running = server.running()
    if running is None:
        say("not running")
        raise typer.Exit(1)
    since = datetime.fromtimestamp(running.started_at, UTC).isoformat(timespec="seconds")
    say(
        f"Spark    localhost:{running.port}",
        f"Process  {running.pid}, since {since}",
        f"Log      {server.log}",
    )
    if not server.fits(running):
        say(
            "Its code or properties are out of date: `fairlead spark up` replaces it",
            err=True,
        )
        raise typer.Exit(1)
    if not server.answers(running):
        say("It does not answer a query: `fairlead spark up` replaces it", err=True)
        raise typer.Exit(1)


def _server() -> "SparkServer":
    from fairlead.sandbox.spark import SparkServer

    settings = read_settings()
    return SparkServer(settings.state_dir, settings.spark)
