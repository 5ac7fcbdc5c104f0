"""`fairlead survey`: what is the matter with every group, before anything is set up.

Belongs here: arguments, and when it looks. Does not: what is found (`fairlead.surfaces.survey`).
"""

import time
from contextlib import suppress
from typing import Annotated, Literal

import typer

from fairlead.surfaces.cli.output import print_json, say, say_error
from fairlead.surfaces.cli.running_sandbox import use_running_sandbox


def survey(
    *,
    minutes: Annotated[float, typer.Option(help="For how long it looks.", min=0)] = 6.0,
    every: Annotated[
        float,
        typer.Option(help="Seconds from look to look; 60 is what planning is tuned to.", min=0.05),
    ] = 60.0,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            help="The cluster. Default: kafka.bootstrap_servers of fairlead.toml; without that "
            "file, a running sandbox."
        ),
    ] = None,
    form: Annotated[
        Literal["text", "json", "html"], typer.Option("--format", help="Of the answer.")
    ] = "text",
) -> None:
    """Say what is the matter with every group of a cluster: nothing is stored or changed.

    Rights to DESCRIBE are enough, and no Postgres is needed. A first answer comes at once (as text;
    on standard error, if another format is asked for), diagnoses with the sixth look. Client
    properties, such as security.protocol, stand in kafka.properties of fairlead.toml, or as JSON in
    FAIRLEAD_KAFKA__PROPERTIES.
    """
    from fairlead.errors import KafkaUnavailableError
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.kafka.reachability import unreachable
    from fairlead.settings import load_settings
    from fairlead.surfaces.survey.finding import ENOUGH, Survey
    from fairlead.surfaces.survey.page import as_lines, as_page

    if bootstrap_servers is None:
        with suppress(ModuleNotFoundError):  # the extra `survey` brings no sandbox
            use_running_sandbox()
    settings = load_settings()
    kafka = settings.kafka
    if bootstrap_servers:
        if why := unreachable(bootstrap_servers):
            raise KafkaUnavailableError(f"Kafka does not answer: {why} (--bootstrap-servers)")
        kafka = kafka.model_copy(update={"bootstrap_servers": bootstrap_servers})
    began = time.monotonic()
    until = began + minutes * 60
    with KafkaGateway(kafka) as gateway:
        survey = Survey(gateway, settings.policies)
        survey.look()
        turn = 1
        while (due := began + turn * every) <= until:
            if survey.looks in {1, ENOUGH + 1} and turn == survey.looks:
                say(
                    *as_lines(survey.found(), survey.missing(), survey.looks, survey.others),
                    "",
                    err=form != "text",
                )
            time.sleep(max(0.0, due - time.monotonic()))
            turn += 1
            try:
                survey.look()
            except KafkaUnavailableError as error:
                say_error(error)  # it may answer again: what was seen stays
    rows, missing = survey.found(), survey.missing()
    if form == "json":
        others = {"other_groups": survey.others, "missing_rights": missing}
        print_json({"looks": survey.looks, "groups": rows} | others)
    elif form == "html":
        typer.echo(as_page(rows, missing, survey.looks, survey.others))
    else:
        say(*as_lines(rows, missing, survey.looks, survey.others))
