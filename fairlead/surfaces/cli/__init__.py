"""The command line, `fairlead`: one module per group of commands.

Each command imports the modules that it needs only when it runs. Otherwise `fairlead assign`, for
example, would wait for Spark's modules.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fairlead.common.disk import room_in
from fairlead.common.threads import one_thread
from fairlead.errors import FairleadError
from fairlead.surfaces.cli import (
    assign,
    backtest,
    db,
    doctor,
    freeze,
    groups,
    keys,
    plan,
    plans,
    policy,
    sample,
    sandbox,
    serve,
    signing_key,
    spark,
    survey,
    up,
)
from fairlead.surfaces.cli.arguments import read_settings
from fairlead.surfaces.cli.output import epilog, say_error
from fairlead.surfaces.cli.running_sandbox import show_version, use_running_sandbox
from fairlead.surfaces.cli.signals import raise_on_signals

if TYPE_CHECKING:
    from rich.console import Console

#: Commands that do not use the configured Kafka cluster: they need no cluster, start a cluster, or
#: take the address of a cluster as an option.
WITHOUT_SERVICES: Final = frozenset(
    {None, "assign", "partition", "decide", "sandbox", "spark", "survey", "demo", "dev"}
)

app = typer.Typer(
    name="fairlead",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich's help would double the time for imports
    context_settings={"max_content_width": 110},
    pretty_exceptions_show_locals=False,  # local variables may hold secrets
)
for command, *examples in (
    (assign.assign, "assign < problems.jsonl"),
    (assign.partition, "partition < keys.jsonl"),
    (assign.decide, "decide < questions.jsonl"),
    (backtest.backtest, "backtest orders --since 2026-01-05 --json"),
    (groups.groups, "groups", "groups --json"),
    (groups.why, "why orders", "why orders orders-7"),
    (groups.lag, "lag orders --limit 10", "lag orders --by-member --at 2026-01-06T09:30"),
    (groups.history, "history orders", "history orders --since 2026-01-06 --json"),
    (keys.keys, "keys orders", "keys orders --group billing --partition 7", "keys orders --to 48"),
    (plan.plan, "plan orders --dry-run", "plan orders --json"),
    (
        freeze.freeze,
        "freeze orders --reason 'the team deploys until noon'",
        "freeze --all --reason 'incident 4711' --yes",
    ),
    (
        freeze.unfreeze,
        "unfreeze orders --reason 'deployed'",
        "unfreeze --all --reason 'incident 4711 is over' --yes",
    ),
    (
        survey.survey,
        "survey --bootstrap-servers broker-1:9092",
        "survey --format html > survey.html",
    ),
    (doctor.doctor, "doctor", "doctor --json"),
    (up.up, "up", "up --plan"),
    (signing_key.signing_key, "signing-key 2026-03"),
    (sample.sample, "sample", "sample --once"),
    (serve.serve, "serve", "serve --host 0.0.0.0 --port 9464"),
):
    app.command(epilog=epilog(*examples))(command)


@app.callback()
def prepare(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=show_version, is_eager=True),
    ] = False,
) -> None:
    """Plan which consumer of a Kafka consumer group reads which partition, from measured lag."""
    del version  # the option's callback prints the version
    if context.invoked_subcommand not in WITHOUT_SERVICES:
        use_running_sandbox()


for name, group in {
    "plans": plans.app,
    "policy": policy.app,
    "sandbox": sandbox.app,
    "spark": spark.app,
    "db": db.app,
}.items():
    app.add_typer(group, name=name)


@app.command(epilog=epilog("demo"))
def demo() -> None:
    """Run the demo on embedded services, from lag to plan."""
    from fairlead.surfaces.demo.run import demo as run

    _recorded("demo", run)


@app.command(epilog=epilog("dev"))
def dev() -> None:
    """Run services, a demo cluster under load, and the UI."""
    from fairlead.surfaces.demo.dev import dev as run

    _recorded("dev", run)


def _recorded(name: str, run: Callable[[Path, "Console"], object]) -> None:
    """Run a command, and write its process id to a file, from which `make clean` reads it."""
    from rich.console import Console

    from fairlead.sandbox.recorded_processes import recorded, require_alone

    state_dir = read_settings().state_dir.absolute()
    require_alone(state_dir)
    with room_in(state_dir), recorded(state_dir, f"fairlead {name}"):
        run(state_dir, Console())


def main() -> None:
    """Run the command line. A FairleadError becomes one line on stderr and exit code 1."""
    one_thread()
    raise_on_signals()
    try:
        with room_in("the output", otherwise=""):
            app()
    except FairleadError as error:
        say_error(error)
        _flush_output()
        sys.exit(1)


def _flush_output() -> None:
    """Flush standard output; if that fails, discard the rest of the output.

    Python flushes the output again at exit; an error there would change the exit code to 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
