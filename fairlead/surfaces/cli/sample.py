"""`fairlead sample`: sample the planned groups without Dagster, once or as a service.

Belongs here: the loop and what it prints. Belongs elsewhere: sampling
(`fairlead.workflows.sampling`).
"""

import logging
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from fairlead.errors import FairleadError
from fairlead.surfaces.cli.arguments import opened_engine
from fairlead.surfaces.cli.output import say, say_error

if TYPE_CHECKING:
    from fairlead.archive import SampleArchive
    from fairlead.settings import Settings
    from fairlead.workflows.sampling import Sampled

_log = logging.getLogger(__name__)


def sample(
    *, once: Annotated[bool, typer.Option("--once", help="Take one sample and end.")] = False
) -> None:
    """Sample all planned groups, without Dagster, until Ctrl-C.

    Takes a sample every `sampling.every`. Dagster's sensor group_samples does the same. If both
    run, groups are not sampled more often. The service continues after every error. With --once,
    the exit code is 1 after an error, or if the sample could not be stored.
    """
    from fairlead.archive import SampleArchive
    from fairlead.settings import load_settings, reloaded
    from fairlead.workflows.sampling_interval import describe_cost, due, wait_s

    settings = load_settings()
    archive = SampleArchive(settings.warehouse_path)
    if once:
        sampled = _sampled(archive, settings)
        say(describe_cost(sampled.taken, settings.sampling))
        raise typer.Exit(bool(sampled.unkept))
    while True:
        pause_s = settings.sampling.every.total_seconds()
        try:
            settings = reloaded(settings)
            last = archive.taken()
            if due(last, settings.sampling, datetime.now(UTC)):
                say(describe_cost(_sampled(archive, settings).taken, settings.sampling))
                continue
            pause_s = max(1.0, wait_s(last, settings.sampling, datetime.now(UTC)))
        except FairleadError as error:
            say_error(error)
        except Exception:  # noqa: BLE001 - an error of one sample must not end the service
            _log.exception("this sample failed; the next one is taken as usual")
        time.sleep(pause_s)


def _sampled(archive: "SampleArchive", settings: "Settings") -> "Sampled":
    from fairlead.kafka.gateway import KafkaGateway
    from fairlead.store.plans import PlanStore
    from fairlead.workflows.sampling import covered_groups, take

    with KafkaGateway(settings.kafka) as gateway, opened_engine() as engine:
        groups = covered_groups(gateway, settings)
        return take(gateway, archive, settings, groups, PlanStore(engine))
