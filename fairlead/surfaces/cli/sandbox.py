"""`fairlead sandbox`: start and stop the embedded Kafka and Postgres.

Belongs here: commands that call `fairlead.sandbox`. Belongs elsewhere: how the services are run.
"""

from typing import TYPE_CHECKING

import typer

from fairlead.surfaces.cli.arguments import read_settings
from fairlead.surfaces.cli.output import epilog

if TYPE_CHECKING:
    from fairlead.sandbox import Sandbox

app = typer.Typer(
    help="Embedded Kafka and Postgres, in .fairlead.",
    no_args_is_help=True,
)


@app.command(epilog=epilog("sandbox up"))
def up() -> None:
    """Start Kafka and Postgres, and print their addresses; `fairlead sandbox down` ends them."""
    services = _sandbox().start()
    for name, value in services.environment().items():
        typer.echo(f"export {name}='{value}'")


@app.command(epilog=epilog("sandbox down"))
def down() -> None:
    """Stop Kafka and Postgres. Their data stay."""
    _sandbox().stop()


def _sandbox() -> "Sandbox":
    from fairlead.sandbox import Sandbox

    return Sandbox(read_settings().state_dir, progress=lambda line: typer.echo(line, err=True))
