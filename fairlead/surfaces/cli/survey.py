"""`fairlead survey`: diagnose every group before anything is set up.

Belongs here: arguments, and when samples are taken. Belongs elsewhere: the diagnoses
(`fairlead.surfaces.survey`).
"""

import time
from contextlib import suppress
from typing import Annotated, Literal

import typer

from fairlead.surfaces.cli.arguments import read_settings
from fairlead.surfaces.cli.output import print_json, say, say_error
from fairlead.surfaces.cli.running_sandbox import use_running_sandbox


def survey(
    *,
    minutes: Annotated[float, typer.Option(help="Minutes to sample for.", min=0)] = 6.0,
    every: Annotated[
        float,
        typer.Option(help="Seconds between samples; the analysis is tuned for 60.", min=0.05),
    ] = 60.0,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            help="The cluster. Default: kafka.bootstrap_servers of fairlead.toml; without that "
            "file, a running sandbox."
        ),
    ] = None,
    form: Annotated[
        Literal["text", "json", "html"], typer.Option("--format", help="Output format.")
    ] = "text",
) -> None:
    """Diagnose all groups of a cluster, before set-up.

    Nothing is stored or changed.

    Needs only DESCRIBE rights, and no Postgres. Prints lag at once (to standard error if the format
    is not text), and diagnoses after the sixth sample. Set client properties, such as
    security.protocol, in kafka.properties of fairlead.toml, or as JSON in
    FAIRLEAD_KAFKA__PROPERTIES.
    """
    from fairlead.errors import KafkaUnavailableError
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.kafka.reachability import unreachable
    from fairlead.surfaces.survey.finding import ENOUGH, Survey
    from fairlead.surfaces.survey.page import as_lines, as_page

    if bootstrap_servers is None:
        with suppress(ModuleNotFoundError):  # the extra `survey` contains no sandbox
            use_running_sandbox()
    settings = read_settings()
    kafka = settings.kafka
    if bootstrap_servers:
        if why := unreachable(bootstrap_servers):
            raise KafkaUnavailableError(f"Kafka does not answer: {why} (--bootstrap-servers)")
        kafka = kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
    began = time.monotonic()
    until = began + minutes * 60
    with KafkaGateway(kafka) as gateway:
        survey = Survey(gateway, settings.policies)
        survey.sample()
        turn = 1
        while (due := began + turn * every) <= until:
            if survey.samples in {1, ENOUGH + 1} and turn == survey.samples:
                say(
                    *as_lines(survey.rows(), survey.missing(), survey.samples, survey.others),
                    "",
                    err=form != "text",
                )
            time.sleep(max(0.0, due - time.monotonic()))
            turn += 1
            try:
                survey.sample()
            except KafkaUnavailableError as error:
                say_error(error)  # continue with earlier samples
    rows, missing = survey.rows(), survey.missing()
    if form == "json":
        others = {"other_groups": survey.others, "missing_rights": missing}
        print_json({"samples": survey.samples, "groups": rows} | others)
    elif form == "html":
        typer.echo(as_page(rows, missing, survey.samples, survey.others))
    else:
        say(*as_lines(rows, missing, survey.samples, survey.others))
