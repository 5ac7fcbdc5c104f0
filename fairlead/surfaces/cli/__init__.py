"""The command line, `fairlead`: one module a command group.

Commands import what they need when they run, so that `fairlead assign` does not wait for Spark.
"""

import signal
import sys
from importlib.abc import MetaPathFinder
from typing import Annotated, Final

import typer

from fairlead.errors import FairleadError
from fairlead.surfaces.cli import (
    assign,
    backtest,
    db,
    groups,
    keys,
    look,
    plan,
    plans,
    policy,
    sandbox,
    serve,
    simulate,
    spark,
)
from fairlead.surfaces.cli.output import epilog, say_error
from fairlead.surfaces.cli.surroundings import show_version, use_running_sandbox

#: Commands that are about no cluster, or bring their own.
WITHOUT_SERVICES: Final = frozenset(
    {None, "assign", "partition", "decide", "simulate", "sandbox", "spark", "demo", "dev"}
)

#: Commands that people wait for; others may start Spark, whose client needs it.
WITHOUT_PANDAS: Final = frozenset({"groups", "history", "lag", "look", "plan", "plans"})

app = typer.Typer(
    name="fairlead",
    no_args_is_help=True,
    rich_markup_mode=None,  # help by rich takes twice as long to import as all of this
    context_settings={"max_content_width": 110},
    pretty_exceptions_show_locals=False,  # a local may hold a secret
)
app.command(
    "assign",
    short_help="Answer assignment problems, a JSON object a line.",
    epilog=epilog("assign < problems.jsonl"),
)(assign.assign)
app.command(
    "partition",
    short_help="Say which partition the producer gives a key.",
    epilog=epilog("partition < keys.jsonl"),
)(assign.partition)
app.command(
    "decide",
    short_help="Decide on groups from looks at them, a JSON object a line.",
    epilog=epilog("decide < questions.jsonl"),
)(assign.decide)
app.command(
    "backtest",
    short_help="What each assignor would have done to a group.",
    epilog=epilog("backtest orders --since 2026-01-05 --output orders.svg"),
)(backtest.backtest)
app.command(
    "simulate",
    short_help="Simulate a consumer group in a closed loop.",
    epilog=epilog("simulate", "simulate skew --controller planner"),
)(simulate.simulate)
app.command(
    "groups",
    short_help="What is the matter with each group, and its plan.",
    epilog=epilog("groups", "groups --json"),
)(groups.groups)
app.command(
    "lag",
    short_help="How far behind a group is, by partition or member.",
    epilog=epilog("lag orders --limit 10", "lag orders --by-member --at 2026-01-06T09:30"),
)(groups.lag)
app.command(
    "history",
    short_help="What happened to a group, the newest first.",
    epilog=epilog("history orders", "history orders --since 2026-01-06 --json"),
)(groups.history)
app.command(
    "plan",
    short_help="Look at a group now, and propose what would help.",
    epilog=epilog("plan orders --dry-run", "plan orders --json"),
)(plan.plan)
app.command(
    "look",
    short_help="Look at all planned groups, again and again.",
    epilog=epilog("look", "look --once"),
)(look.look)
app.command(
    "serve",
    short_help="Serve metrics for Prometheus, and reviews of plans.",
    epilog=epilog("serve", "serve --host 0.0.0.0 --port 9464"),
)(serve.serve)


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
    del version  # its callback has answered
    if context.invoked_subcommand not in WITHOUT_SERVICES:
        use_running_sandbox()


app.add_typer(
    plans.app, name="plans", short_help="What was proposed, approved and followed; next steps."
)
app.add_typer(policy.app, name="policy")
app.add_typer(sandbox.app, name="sandbox", short_help="Embedded Kafka and Postgres, in .fairlead.")
app.add_typer(spark.app, name="spark", short_help="Spark kept warm on this machine.")
app.add_typer(db.app, name="db", short_help="The database's schema and size.")
app.add_typer(keys.app, name="keys")


@app.command(short_help="Run the whole job on embedded services: make demo.", epilog=epilog("demo"))
def demo() -> None:
    """Run the whole job on embedded services: skewed lag, a plan, its adoption, two drains."""
    from rich.console import Console

    from fairlead.settings import load_settings
    from fairlead.surfaces.demo.run import demo as run_demo

    run_demo(load_settings().state_dir.absolute(), Console())


@app.command(short_help="Services, a demo cluster under load, and the UI.", epilog=epilog("dev"))
def dev() -> None:
    """Start embedded services, a demo cluster under load, and the Dagster UI; Ctrl-C ends all."""
    from rich.console import Console

    from fairlead.settings import load_settings
    from fairlead.surfaces.demo.dev import dev as run_dev

    run_dev(load_settings().state_dir.absolute(), Console())


class _NoPandas(MetaPathFinder):
    """Lets pyarrow, which looks for pandas whatever it is asked, find none.

    Importing it takes longer than most commands; none of them hands a data frame to anybody.
    """

    def find_spec(self, fullname: str, *_: object) -> None:
        """Refuse pandas."""
        if fullname == "pandas":
            raise ModuleNotFoundError("no command of fairlead uses pandas", name=fullname)


def main() -> None:
    """Run the command line; an error of ours is one line on standard error and exit code 1."""
    if len(sys.argv) > 1 and sys.argv[1] in WITHOUT_PANDAS:
        sys.meta_path.insert(0, _NoPandas())
    # A shell starts what it puts in the background with SIGINT ignored; both signals must stop what
    # a command has started, in order.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app()
    except FairleadError as error:
        say_error(error)
        sys.exit(1)
