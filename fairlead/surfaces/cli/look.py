"""`fairlead look`: looks at the planned groups without Dagster, once or as a service.

Belongs here: the loop and what it says. Does not: what a look is (`fairlead.domain.looks`).
"""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.surfaces.cli.arguments import opened_engine
from fairlead.surfaces.cli.output import say, say_error

if TYPE_CHECKING:
    from fairlead.archive import LookArchive
    from fairlead.settings import Settings


def look(
    *, once: Annotated[bool, typer.Option("--once", help="Take one look and end.")] = False
) -> None:
    """Look at the offsets and owners of all planned groups, every `looks.every`, until Ctrl-C.

    Dagster's sensor group_looks does the same. Where both run, each leaves the other its looks.
    """
    from fairlead.archive import LookArchive
    from fairlead.errors import ClocksApartError, KafkaUnavailableError, StoreUnavailableError
    from fairlead.settings import load_settings, reloaded
    from fairlead.workflows.look_interval import due, now, wait_s

    settings = load_settings()
    archive = LookArchive(settings.warehouse_path)
    if once:
        say(_taken(archive, settings))
        return
    while True:
        settings = reloaded(settings)
        last = archive.taken()
        if not due(last, settings.looks, now()):
            time.sleep(max(1.0, wait_s(last, settings.looks, now())))
            continue
        try:
            say(_taken(archive, settings))
        except (ClocksApartError, KafkaUnavailableError, StoreUnavailableError) as error:
            say_error(error)  # it may answer again: services go on
            time.sleep(settings.looks.every.total_seconds())


def _taken(archive: "LookArchive", settings: "Settings") -> str:
    """Take a look; say what it cost."""
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.store.plans import PlanStore
    from fairlead.workflows.look_interval import told
    from fairlead.workflows.looking import covered_groups, take

    with KafkaGateway(settings.kafka) as gateway, opened_engine() as engine:
        groups = covered_groups(gateway, settings)
        looked = take(gateway, archive, settings, groups, PlanStore(engine))
        return told(looked.taken, settings.looks)
