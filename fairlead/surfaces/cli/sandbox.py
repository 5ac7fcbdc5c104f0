"""`fairlead sandbox`: start and stop the embedded Kafka and Postgres.

Belongs here: commands over `fairlead.sandbox`. Does not: how the services are run.
"""

from typing import TYPE_CHECKING

import typer

from fairlead.surfaces.cli.output import epilog

if TYPE_CHECKING:
    from fairlead.sandbox import Sandbox

app = typer.Typer(
    help="Embedded Kafka and Postgres, in .fairlead.",
    no_args_is_help=True,
)


@app.command(epilog=epilog("sandbox up"))
def up() -> None:
    """Start Kafka and Postgres; they run until `fairlead sandbox down`."""
    services = _sandbox().start()
    for name, value in services.environment().items():
        typer.echo(f"export {name}='{value}'")


@app.command(epilog=epilog("sandbox down"))
def down() -> None:
    """Stop Kafka and Postgres. Their data stay."""
    _sandbox().stop()


@app.command(epilog=epilog("sandbox status"))
def status() -> None:
    """Print the addresses of Kafka and Postgres; the exit code is 1 if they do not run."""
    services = _sandbox().running()
    if services is None:
        typer.echo("not running")
        raise typer.Exit(1)
    typer.echo(f"Kafka     {services.bootstrap_servers}")
    typer.echo(f"Postgres  {services.postgres_url}")


def _sandbox() -> "Sandbox":
    from fairlead.sandbox import Sandbox
    from fairlead.settings import load_settings

    return Sandbox(load_settings().state_dir, progress=lambda line: typer.echo(line, err=True))
