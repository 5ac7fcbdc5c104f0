"""`fairlead backtest`: replay recorded samples with other assignors or policies.

Belongs here: the command's arguments, and where its output goes. Belongs elsewhere: replaying and
summarising (`fairlead.surfaces.backtest`).
"""

from datetime import datetime
from typing import Annotated

import typer

from fairlead.surfaces.cli.arguments import Group, Since, parse_moment, read_settings
from fairlead.surfaces.cli.output import print_json, print_table, say


def backtest(
    group: Group,
    *,
    since: Since = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            parser=parse_moment,
            metavar="TIME",
            help="End of the period (excluded). Default: the newest sample.",
        ),
    ] = None,
    assignor: Annotated[
        list[str] | None,
        typer.Option(help="Assignor to replay; may be repeated. Default: the policy's assignors."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all figures and their series as JSON.")
    ] = False,
) -> None:
    """Replay a group's history with each assignor, best first.

    Records arrive as recorded, and consumers are as fast as measured. The owners of partitions, and
    therefore the time lag, depend on the assignor. "Behind" is how long partitions lag by more than
    the policy's objective, summed over partitions.
    """
    from fairlead.archive import SampleArchive
    from fairlead.domain.policy import policy_for
    from fairlead.surfaces.backtest.replays import backtest as replay_all
    from fairlead.surfaces.backtest.replays import find_samples
    from fairlead.surfaces.backtest.report import COLUMNS, Report

    settings = read_settings()
    policy = policy_for(group, settings.policies)
    archive = SampleArchive(settings.warehouse_path)
    samples = find_samples(archive, group, since=since, until=until)
    report = Report.of(group, replay_all(samples, policy, assignor or ()))
    if as_json:
        print_json(report.as_dict())
    else:
        print_table(report.rows(), COLUMNS, title=report.title)
        if saved := report.saved():
            say(f"{saved}.")
        for reason, count in report.skipped.items():
            say(f"skipped {count:,} samples: {reason}", err=True)
