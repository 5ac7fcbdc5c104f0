"""`fairlead look`: looks at the planned groups without Dagster, once or as a service.

Belongs here: the loop and what it says. Does not: what a look is (`fairlead.domain.samples`).
"""

import logging
import time
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.errors import FairleadError
from fairlead.surfaces.cli.arguments import opened_engine
from fairlead.surfaces.cli.output import say, say_error

if TYPE_CHECKING:
    from fairlead.archive import LookArchive
    from fairlead.settings import Settings
    from fairlead.workflows.looking import Looked

_log = logging.getLogger(__name__)


def look(
    *, once: Annotated[bool, typer.Option("--once", help="Take one look and end.")] = False
) -> None:
    """Look at the offsets and owners of all planned groups, every `sampling.every`, until Ctrl-C.

    Dagster's sensor group_samples does the same. Where both run, each leaves the other its looks.
    As a service it goes on after any error; with --once an error, or a look that could not be
    written, is exit code 1.
    """
    from fairlead.archive import LookArchive
    from fairlead.settings import load_settings, reloaded
    from fairlead.workflows.look_interval import due, now, told, wait_s

    settings = load_settings()
    archive = LookArchive(settings.warehouse_path)
    if once:
        looked = _looked(archive, settings)
        say(told(looked.taken, settings.sampling))
        raise typer.Exit(bool(looked.unkept))
    while True:
        line, pause_s = "", settings.sampling.every.total_seconds()
        try:
            settings = reloaded(settings)
            last = archive.taken()
            if due(last, settings.sampling, now()):
                line, pause_s = told(_looked(archive, settings).taken, settings.sampling), 0.0
            else:
                pause_s = max(1.0, wait_s(last, settings.sampling, now()))
        except FairleadError as error:
            say_error(error)
        except Exception:  # noqa: BLE001 - an error of one look must not end the service
            _log.exception("this look failed; the next one is taken as usual")
        if line:
            say(line)
        time.sleep(pause_s)


def _looked(archive: "LookArchive", settings: "Settings") -> "Looked":
    """Take a look."""
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.store.plans import PlanStore
    from fairlead.workflows.looking import covered_groups, take

    with KafkaGateway(settings.kafka) as gateway, opened_engine() as engine:
        groups = covered_groups(gateway, settings)
        return take(gateway, archive, settings, groups, PlanStore(engine))
