"""The command line, `fairlead`: one module per group of commands.

Commands import what they need when they run: `fairlead assign` does not wait for Spark.
"""

import os
import signal
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
from fairlead.surfaces.cli.output import epilog, say_error
from fairlead.surfaces.cli.running_sandbox import show_version, use_running_sandbox

if TYPE_CHECKING:
    from rich.console import Console

#: Commands that need no cluster, start one of their own, or choose the cluster themselves.
WITHOUT_SERVICES: Final = frozenset(
    {None, "assign", "partition", "decide", "sandbox", "spark", "survey", "demo", "dev"}
)

app = typer.Typer(
    name="fairlead",
    no_args_is_help=True,
    rich_markup_mode=None,  # help by rich doubles the time for imports
    context_settings={"max_content_width": 110},
    pretty_exceptions_show_locals=False,  # local variables may hold secrets
)
for command, short_help, *examples in (
    (
        assign.assign,
        "Solve assignment problems, one JSON object per line.",
        "assign < problems.jsonl",
    ),
    (assign.partition, "Return the partition of a record's key.", "partition < keys.jsonl"),
    (assign.decide, "Decide on groups, one JSON object per line.", "decide < questions.jsonl"),
    (
        backtest.backtest,
        "Replay a group's history with each assignor.",
        "backtest orders --since 2026-01-05 --output orders.svg",
    ),
    (
        groups.groups,
        "List groups with diagnosis and next step, worst first.",
        "groups",
        "groups --wide",
        "groups --json",
    ),
    (
        groups.why,
        "Explain the state of a group, or the owner of a partition.",
        "why orders",
        "why orders orders-7",
    ),
    (
        groups.lag,
        "Show a group's lag by partition, member or topic.",
        "lag orders --limit 10",
        "lag orders --by-member --at 2026-01-06T09:30",
    ),
    (
        groups.history,
        "Show what happened to a group, newest first.",
        "history orders",
        "history orders --since 2026-01-06 --json",
    ),
    (
        keys.keys,
        "Report which keys make a partition hot.",
        "keys orders",
        "keys orders --group billing --partition 7",
        "keys orders --to 48 --format html > keys.html",
    ),
    (
        plan.plan,
        "Analyse a group now, and propose a plan that would help.",
        "plan orders --dry-run",
        "plan orders --json",
    ),
    (
        freeze.freeze,
        "Stop publication of new plans.",
        "freeze orders --reason 'the team deploys until noon'",
        "freeze --all --reason 'incident 4711' --yes",
    ),
    (
        freeze.unfreeze,
        "Resume publication of new plans.",
        "unfreeze orders --reason 'deployed'",
        "unfreeze --all --reason 'incident 4711 is over' --yes",
    ),
    (
        survey.survey,
        "Diagnose all groups of a cluster, before set-up.",
        "survey --bootstrap-servers broker-1:9092",
        "survey --format html > survey.html",
    ),
    (doctor.doctor, "Check the installation; suggest remedies.", "doctor", "doctor --json"),
    (up.up, "Run the whole planner on this machine.", "up", "up --plan"),
    (signing_key.signing_key, "Create a key pair for signing plans.", "signing-key 2026-03"),
    (sample.sample, "Sample all planned groups, without Dagster.", "sample", "sample --once"),
    (
        serve.serve,
        "Serve metrics for Prometheus, and pages.",
        "serve",
        "serve --host 0.0.0.0 --port 9464",
    ),
):
    app.command(short_help=short_help, epilog=epilog(*examples))(command)


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


app.add_typer(
    plans.app, name="plans", short_help="List, review, approve and withdraw versions of plans."
)
app.add_typer(policy.app, name="policy")
app.add_typer(sandbox.app, name="sandbox", short_help="Embedded Kafka and Postgres, in .fairlead.")
app.add_typer(spark.app, name="spark", short_help="Keep a Spark server running on this machine.")
app.add_typer(db.app, name="db", short_help="Upgrade, check and prune the database; psql.")


@app.command(
    short_help="Run the demo on embedded services, from lag to plan.", epilog=epilog("demo")
)
def demo() -> None:
    """Run the demo on embedded services: skewed lag, a plan, its adoption, and the result."""
    from fairlead.surfaces.demo.run import demo as run

    _recorded("demo", run)


@app.command(
    short_help="Run services, a demo cluster under load, and the UI.", epilog=epilog("dev")
)
def dev() -> None:
    """Start embedded services, a demo cluster under load, and the Dagster UI; Ctrl-C ends all."""
    from fairlead.surfaces.demo.dev import dev as run

    _recorded("dev", run)


def _recorded(name: str, run: Callable[[Path, "Console"], object]) -> None:
    """Run a command, and record its process so that `make clean` can end it."""
    from rich.console import Console

    from fairlead.sandbox.recorded_processes import recorded
    from fairlead.settings import load_settings

    state_dir = load_settings().state_dir.absolute()
    with room_in(state_dir), recorded(state_dir, f"fairlead {name}"):
        run(state_dir, Console())


def main() -> None:
    """Run the command line; a FairleadError is one line on standard error and exit code 1."""
    one_thread()
    # Shells start background jobs with SIGINT ignored. Both signals must stop everything that a
    # command has started.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with room_in("the output", otherwise=""):
            app()
    except FairleadError as error:
        say_error(error)
        _flush_output()
        sys.exit(1)


def _flush_output() -> None:
    """Flush standard output; if that fails, discard the rest, or Python exits with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
