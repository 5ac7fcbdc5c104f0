"""`fairlead keys`: report the keys that make a partition hot, and the effect of more partitions.

Belongs here: arguments. Does not: sampling (`fairlead.workflows.key_sampling`), nor the formats of
the report (`fairlead.surfaces.keys`).
"""

from contextlib import nullcontext
from typing import Annotated, Final, Literal

import typer

from fairlead.surfaces.cli.arguments import complete_group, known_text, opened_engine
from fairlead.surfaces.cli.output import print_json, print_table, say

_GROUP: Final = "Consumer group whose lag is forecast for more partitions."
_TO: Final = "Number of partitions to compare with. Default: the smallest one that helps."
_SHOW: Final = "Show the keys instead of the start of their SHA-256."


def keys(
    topic: Annotated[str, typer.Argument(help="Topic to sample.", callback=known_text)],
    *,
    group: Annotated[
        str | None, typer.Option(help=_GROUP, autocompletion=complete_group, callback=known_text)
    ] = None,
    partition: Annotated[int | None, typer.Option(help="List a partition's keys.", min=0)] = None,
    to: Annotated[int | None, typer.Option(help=_TO, min=2, max=100_000)] = None,
    records: Annotated[
        int, typer.Option(help="Number of records to sample.", min=1_000, max=1_000_000)
    ] = 100_000,
    minutes: Annotated[
        float, typer.Option(help="Sample the last minutes of the log.", min=1, max=1e6)
    ] = 60.0,
    show_keys: Annotated[bool, typer.Option("--show-keys", help=_SHOW)] = False,
    form: Annotated[
        Literal["text", "json", "html"], typer.Option("--format", help="Output format.")
    ] = "text",
) -> None:
    """Report which keys make a partition hot.

    Also reports the effect of more partitions. Records are sampled evenly over time and partitions:
    at most 100 MB in 60 s. The command joins no group, and neither commits nor stores anything.
    """
    from fairlead.settings import load_settings
    from fairlead.surfaces.keys import as_page, tables
    from fairlead.workflows.key_sampling import report_on_keys

    with opened_engine() if group else nullcontext() as engine:
        report = report_on_keys(
            load_settings(),
            topic,
            engine,
            group=group,
            partition=partition,
            to=to,
            records=records,
            minutes=minutes,
            show_keys=show_keys,
        )
    if form == "json":
        print_json(report)
        return
    if form == "html":
        typer.echo(as_page(report))
        return
    say(report["verdict"])
    for rows in filter(None, tables(report)):
        say("")
        print_table(rows, [*rows[0]])
    say("", *report["notes"])
