"""`fairlead keys`: which keys make a partition hot, and what more partitions would give.

Belongs here: arguments. Does not: sampling (`fairlead.workflows.key_sampling`), nor what is shown
(`fairlead.surfaces.keys`).
"""

from collections.abc import Callable
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from fairlead.common.visible import visible
from fairlead.surfaces.cli.arguments import complete_group, known_text, opened_engine
from fairlead.surfaces.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from fairlead.domain.key_report import KeyReport, Readers


_WIDTH: Final = 80


def keys(
    topic: Annotated[str, typer.Argument(help="The topic.", callback=known_text)],
    *,
    group: Annotated[
        str | None,
        typer.Option(
            help="Its consumers: forecast their lag with more partitions.",
            autocompletion=complete_group,
            callback=known_text,
        ),
    ] = None,
    partition: Annotated[
        int | None, typer.Option(help="List the keys of this partition.", min=0)
    ] = None,
    to: Annotated[
        int | None,
        typer.Option(
            help="Number of partitions to compare with. Default: the smallest that helps.",
            min=2,
            max=100_000,
        ),
    ] = None,
    records: Annotated[
        int, typer.Option(help="Records to sample.", min=1_000, max=20_000_000)
    ] = 100_000,
    minutes: Annotated[
        float, typer.Option(help="Length of the window that is sampled.", min=1, max=1e6)
    ] = 60.0,
    megabytes: Annotated[int, typer.Option(help="Maximum to read.", min=1)] = 100,
    seconds: Annotated[float, typer.Option(help="Maximum time to read.", min=1)] = 60.0,
    show_keys: Annotated[
        bool, typer.Option("--show-keys", help="Show keys, not the start of their SHA-256.")
    ] = False,
    form: Annotated[
        Literal["text", "json", "html"], typer.Option("--format", help="Of the answer.")
    ] = "text",
) -> None:
    """Report which keys make a partition hot, and what more partitions would give.

    Records are sampled evenly over time and partitions. More than 1,000,000 are read by Spark. No
    group is joined, and nothing is committed or stored.
    """
    from functools import partial

    from fairlead.domain.policy import policy_for
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.kafka.record_sample import Limits
    from fairlead.settings import load_settings
    from fairlead.surfaces.keys import page
    from fairlead.surfaces.keys.session import spark_session
    from fairlead.workflows.key_sampling import readers_of, report_on_keys

    settings = load_settings()

    def report(readers: "Callable[[int], Readers] | None" = None) -> "KeyReport":
        with KafkaGateway(settings.kafka) as gateway:
            return report_on_keys(
                gateway,
                topic,
                Limits(records, megabytes * 1_000_000, seconds),
                minutes=minutes,
                partition=partition,
                to=to,
                readers=readers,
                spark=partial(spark_session, settings.spark),
            )

    if group is None:
        found = report()
    else:
        with opened_engine() as engine:
            found = report(
                partial(readers_of, engine, group, topic, policy_for(group, settings.policies))
            )
    if form == "json":
        print_json(page.as_document(found, show_keys=show_keys))
    elif form == "html":
        typer.echo(page.as_page(found, show_keys=show_keys))
    else:
        say(*_wrapped(found.verdict), "", *_wrapped(page.heading(found)))
        for columns, rows in (
            (page.KEYS, page.key_rows(found, show_keys=show_keys)),
            (page.SCENARIOS, page.scenario_rows(found)),
        ):
            if named := page.named(columns, rows):
                print_table(named, [*named[0]])
                say("")
        say(*(line for note in page.notes(found) for line in _wrapped(note)))


def _wrapped(text: str) -> list[str]:
    return wrap(visible(text), _WIDTH, break_long_words=False, break_on_hyphens=False)
