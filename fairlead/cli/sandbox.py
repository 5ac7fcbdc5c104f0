"""`fairlead sandbox`: the embedded Kafka and Postgres, by hand.

Belongs here: commands over `fairlead.sandbox`. Does not: how the services are run.
"""

import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fairlead.sandbox import Sandbox

app = typer.Typer(
    help="Embedded Kafka and Postgres under the state directory (.fairlead).",
    no_args_is_help=True,
)


@app.command()
def up() -> None:
    """Start Kafka and Postgres, and leave them running until `fairlead sandbox down`."""
    services = _sandbox().start()
    for name, value in services.environment().items():
        typer.echo(f"export {name}='{value}'")


@app.command()
def down() -> None:
    """Stop Kafka and Postgres, whoever started them. Their data stay."""
    _sandbox().stop()


@app.command()
def status() -> None:
    """Show where Kafka and Postgres are reached; the exit code is 1 when they do not run."""
    services = _sandbox().running()
    if services is None:
        typer.echo("not running")
        raise typer.Exit(1)
    typer.echo(f"Kafka     {services.bootstrap_servers}")
    typer.echo(f"Postgres  {services.postgres_url}")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def psql(
    arguments: Annotated[list[str] | None, typer.Argument(help="Passed on to psql.")] = None,
) -> None:
    """Open psql on the plan history; arguments go to psql: `fairlead sandbox psql -- -c '...'`."""
    from fairlead.errors import SandboxError
    from fairlead.sandbox.postgres import psql_path

    sandbox = _sandbox()
    services = sandbox.running()
    if services is None:
        raise SandboxError(
            f"No sandbox runs in {sandbox.state_dir}: start one with `fairlead sandbox up`"
        )
    options = f"{os.environ.get('PGOPTIONS', '')} -c search_path=fairlead,public".strip()
    os.execve(  # noqa: S606 - psql takes over this terminal
        psql_path(),
        [str(psql_path()), services.postgres_url, *(arguments or [])],
        {**os.environ, "PGOPTIONS": options},
    )


def _sandbox() -> "Sandbox":
    from fairlead.sandbox import Sandbox
    from fairlead.settings import load_settings

    return Sandbox(load_settings().state_dir, progress=lambda line: typer.echo(line, err=True))
