"""`fairlead sandbox`: the embedded Kafka and Postgres, by hand.

Belongs here: commands over `fairlead.sandbox`. Does not: how the services are run.
"""

import os
import signal
import subprocess
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fairlead.surfaces.cli.output import epilog

if TYPE_CHECKING:
    from fairlead.sandbox import Sandbox

#: Said before psql opens: `\d` lists more, and these are what people ask first.
VIEWS: Final = """\
Ask these five views; \\d+ NAME says what their columns mean, \\dv what others there are:
  plan_history     every version: state, who decided, what it moves, predicts and achieved
  plan_moves       each partition whose owner a version changes, with the reason
  adoption         how far consumers follow the published version
  balance_history  how evenly work was spread: observed, predicted, achieved
  lag_history      offsets, lag, rates, status and owner of every partition in every snapshot
"""

app = typer.Typer(
    help="Embedded Kafka and Postgres under the state directory (.fairlead).",
    no_args_is_help=True,
)


@app.command(epilog=epilog("sandbox up"))
def up() -> None:
    """Start Kafka and Postgres, and leave them running until `fairlead sandbox down`."""
    services = _sandbox().start()
    for name, value in services.environment().items():
        typer.echo(f"export {name}='{value}'")


@app.command(epilog=epilog("sandbox down"))
def down() -> None:
    """Stop Kafka and Postgres, whoever started them. Their data stay."""
    _sandbox().stop()


@app.command(epilog=epilog("sandbox status"))
def status() -> None:
    """Show where Kafka and Postgres are reached; the exit code is 1 when they do not run."""
    services = _sandbox().running()
    if services is None:
        typer.echo("not running")
        raise typer.Exit(1)
    typer.echo(f"Kafka     {services.bootstrap_servers}")
    typer.echo(f"Postgres  {services.postgres_url}")


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog=epilog("sandbox psql", "sandbox psql -- -c 'SELECT * FROM plan_history'"),
)
def psql(
    arguments: Annotated[list[str] | None, typer.Argument(help="Passed on to psql.")] = None,
) -> None:
    """Open psql on the plan history; arguments go to psql: `fairlead sandbox psql -- -c '...'`.

    Where Postgres does not run, it is started for as long as psql does.
    """
    from fairlead.errors import SandboxError
    from fairlead.sandbox.postgres import psql_path

    postgres = _sandbox().postgres
    if not postgres.state_dir.exists():
        raise SandboxError(
            f"There is no plan history in {postgres.state_dir.parent} yet: try `fairlead demo`"
        )
    if not arguments:
        typer.echo(VIEWS, err=True)
    keep = postgres.process() is not None
    options = f"{os.environ.get('PGOPTIONS', '')} -c search_path=fairlead,public".strip()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for psql, which ends a query by it
    postgres.start()
    try:
        done = subprocess.run(
            [psql_path(), postgres.url("fairlead"), *(arguments or [])],
            env={**os.environ, "PGOPTIONS": options},
            check=False,
        )
    finally:
        if not keep:
            postgres.stop()
    raise typer.Exit(done.returncode)


def _sandbox() -> "Sandbox":
    from fairlead.sandbox import Sandbox
    from fairlead.settings import load_settings

    return Sandbox(load_settings().state_dir, progress=lambda line: typer.echo(line, err=True))
