"""Samples of the demo's groups every few seconds, so that planning soon has enough samples.

Belongs here: the thread that takes samples. Belongs elsewhere: their content
(`fairlead.domain.samples`).
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from fairlead.archive import SampleArchive
from fairlead.errors import KafkaUnavailableError, StoreUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from fairlead.store.plans import PlanStore
from fairlead.workflows.sampling import Sampled, take

_log = logging.getLogger(__name__)

EVERY_S: Final = 3.0


@contextmanager
def frequent_samples(
    settings: Settings,
    groups: Sequence[str],
    *,
    every_s: float = EVERY_S,
    store: PlanStore | None = None,
) -> Iterator[list[Sampled]]:
    """Sample groups in a thread until the block ends.

    Parameters
    ----------
    settings
        Settings with the addresses of Kafka and the warehouse.
    groups
        The groups to sample.
    every_s
        Seconds between samples.
    store
        Stores diagnoses and plan requests; None: neither is stored.

    Yields
    ------
    The samples so far; the list grows during the block.
    """
    taken: list[Sampled] = []
    stopped = threading.Event()

    def sample() -> None:
        archive = SampleArchive(settings.warehouse_path)
        with KafkaGateway(settings.kafka) as gateway:
            while not stopped.wait(every_s):
                try:
                    taken.append(take(gateway, archive, settings, groups, store))
                except (KafkaUnavailableError, StoreUnavailableError) as error:
                    _log.warning("a sample failed: %s", error)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        stopped.set()
        thread.join()
