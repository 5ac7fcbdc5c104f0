"""`fairlead keys`: report which keys make a partition hot, and whether more partitions would help.

Belongs here: arguments, and the tables of the report. Belongs elsewhere: sampling
(`fairlead.workflows.key_sampling`), and the report (`fairlead.domain.key_report`).
"""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Annotated, Any, Final, Literal

import typer

from fairlead.common.words import length, listed, percent, shortened
from fairlead.surfaces.cli.arguments import complete_group, known_text, opened_engine, read_settings
from fairlead.surfaces.cli.output import print_json, print_table, say

Row = dict[str, Any]

#: Keys with a smaller share of the records are not in the table; the JSON document has all keys.
_LEAST: Final = 0.001
#: Maximum number of partitions listed for a key.
_LISTED: Final = 3

_GROUP: Final = "Consumer group; the report forecasts its lag if the topic had more partitions."
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
        float, typer.Option(help="Sample the records of this many minutes.", min=1, max=1e6)
    ] = 60.0,
    show_keys: Annotated[bool, typer.Option("--show-keys", help=_SHOW)] = False,
    form: Annotated[
        Literal["text", "json"], typer.Option("--format", help="Output format.")
    ] = "text",
) -> None:
    """Report which keys make a partition hot.

    Also reports the effect of more partitions. Records are sampled evenly over time and partitions:
    at most 100 MB in 60 s. The command joins no group, and neither commits nor stores anything.
    """
    from fairlead.workflows.key_sampling import report_on_keys

    with opened_engine() if group else nullcontext() as engine:
        report = report_on_keys(
            read_settings(),
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
    say(report["verdict"])
    for rows in filter(None, tables(report)):
        say("")
        print_table(rows, [*rows[0]])
    say("", *report["notes"])


def tables(report: Row) -> list[list[Row]]:
    """Return a table of keys and a table of partition counts; rows map headings to texts."""
    keys = [
        {
            "key": shortened(key["key"]),
            "share": percent(key["share"]),
            "90 % interval": f"{100 * key['low']:.1f} to {percent(key['high'])}",
            "of time": "" if key["time_share"] is None else percent(key["time_share"]),
            "partition": listed([*map(str, key["partitions"])], at_most=_LISTED),
        }
        for key in report["keys"]
        if key["share"] >= _LEAST
    ]
    if report["without_key"]:
        keys.append({"key": "(no key)", "share": percent(report["without_key"])})
    scenarios = [
        {
            "partitions": f"{each['partitions']:,}",
            "largest gets": percent(each["largest"]),
            "today's consumers": _consumers(each["today"]),
            "consumers wanted": _consumers(each["wanted"]),
        }
        for each in report["scenarios"]
    ]
    return [_filled(rows) for rows in (keys, scenarios)]


def _filled(rows: list[Row]) -> list[Row]:
    """Drop the columns that are empty in every row."""
    names = dict.fromkeys(name for row in rows for name, text in row.items() if text)
    return [{name: row.get(name, "") for name in names} for row in rows]


def _consumers(forecast: Mapping[str, Any] | None) -> str:
    if forecast is None:
        return ""
    behind = length(forecast["time_lag_s"])
    return f"{forecast['count']:,}: busiest {forecast['utilisation']:.0%}, {behind} behind"
