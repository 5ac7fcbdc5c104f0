"""`fairlead db`: the schema and size of Fairlead's database, and psql.

Belongs here: commands that call `fairlead.store.migrate` and `fairlead.store.retention`. Belongs
elsewhere: how migrations are run, and which history may be removed.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fairlead.errors import FairleadError, SandboxError
from fairlead.surfaces.cli.arguments import opened_engine, read_settings
from fairlead.surfaces.cli.output import epilog, say, say_error

if TYPE_CHECKING:
    from fairlead.settings import Settings

#: Printed before psql opens.
VIEWS: Final = "\\dv+ lists the views; \\d+ plan_history shows what its columns mean"

app = typer.Typer(
    help="Upgrade, check or prune the database, or open psql on it.",
    no_args_is_help=True,
)


@app.command(epilog=epilog("db upgrade"))
def upgrade() -> None:
    """Upgrade the database to this version's schema."""
    from fairlead.store import migrate

    url = _url()
    before = migrate.current(url)
    migrate.upgrade(url)
    after = migrate.current(url)
    say(f"{after}, unchanged" if after == before else f"{before or 'empty'} -> {after}")


@app.command(epilog=epilog("db current"))
def current() -> None:
    """Print the database's revision; exit with 1 if it is old."""
    from fairlead.store import migrate

    revision, head = migrate.current(_url()), migrate.head()
    if revision != head:
        say(f"{revision or 'empty'}; the newest is {head}: run `fairlead db upgrade`")
        raise typer.Exit(1)
    typer.echo(revision)


@app.command(epilog=epilog("db check"))
def check() -> None:
    """Check that database and code agree; exit with 1 if not."""
    from fairlead.store import migrate

    migrate.check(_url())
    say("the database has the schema of this version")


@app.command(epilog=epilog("db prune --dry-run", "db prune --every 24"))
def prune(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be dropped; drop nothing.")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(min=0.01, help="Hours between repetitions; runs until Ctrl-C."),
    ] = None,
) -> None:
    """Drop old history, and old plans that were not published, by the retention settings."""
    import time

    while every is not None:
        try:
            _prune(dry_run=dry_run)
        except FairleadError as error:
            say_error(error)  # continue: the next attempt may succeed
        time.sleep(every * 3600)
    _prune(dry_run=dry_run)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    epilog=epilog("db psql", "db psql -- -c 'SELECT * FROM plan_history'"),
)
def psql(
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments for psql.")] = None,
) -> None:
    """Open psql on the database that has the plan history.

    Arguments go to psql: `fairlead db psql -- -c '...'`. If no setting names a database, psql
    opens the database of the sandbox in the state directory. If the sandbox's Postgres does not
    run, it is started for psql, and stopped afterwards.
    """
    from sqlalchemy import make_url

    from fairlead.sandbox.postgres import psql_path

    settings = read_settings()
    named = "url" in settings.postgres.model_fields_set
    with nullcontext(_url()) if named else _sandbox_url(settings) as text:
        if not arguments:
            typer.echo(VIEWS, err=True)
        url = make_url(text).set(drivername="postgresql")
        options = f"{os.environ.get('PGOPTIONS', '')} -c search_path=fairlead,public".strip()
        # Other users of this machine can read a process's arguments, but not its environment.
        password = {"PGPASSWORD": url.password} if url.password else {}
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends a query in psql
        completed = subprocess.run(
            [psql_path(), str(url.set(password=None)), *(arguments or [])],
            env={**os.environ, **password, "PGOPTIONS": options},
            check=False,
        )
    raise typer.Exit(completed.returncode)


@contextmanager
def _sandbox_url(settings: "Settings") -> Iterator[str]:
    """Yield the URL of the sandbox's Postgres; if Postgres is stopped, run it during the block."""
    from fairlead.sandbox import Sandbox

    postgres = Sandbox(
        settings.state_dir, progress=lambda line: typer.echo(line, err=True)
    ).postgres
    if not postgres.state_dir.exists():
        raise SandboxError(
            f"No setting names a database, and there is no plan history in "
            f"{postgres.state_dir.parent} yet: set postgres.url, or try `fairlead demo`"
        )
    keep = postgres.process() is not None
    postgres.start()
    try:
        yield postgres.url("fairlead")
    finally:
        if not keep:
            postgres.stop()


def _prune(*, dry_run: bool) -> None:
    """Prune once, or with `dry_run` only find old days; print the days and their sizes."""
    from fairlead.store import retention

    settings = read_settings()
    older_than = datetime.now(UTC) - settings.history_retention
    rows: Mapping[str, int] = {}
    with opened_engine() as engine:
        if dry_run:
            every = retention.history_days(engine)
            days = tuple(day for day in every if day.day < older_than.date())
        else:
            summaries = datetime.now(UTC) - settings.summary_retention
            pruned = retention.prune(engine, older_than, summaries)
            days, rows = pruned.days, pruned.rows
    for day in days:
        say(f"{day.day}  {day.bytes / 2**20:,.1f} MiB")
    size = sum(day.bytes for day in days) / 2**20
    what = "would be dropped" if dry_run else "dropped"
    say(f"days before {older_than:%Y-%m-%d} {what}: {len(days)}, {size:,.1f} MiB")
    for what, number in rows.items():
        if number:
            say(f"{what}: {number:,}")


def _url() -> str:
    return read_settings().postgres.url.get_secret_value()
