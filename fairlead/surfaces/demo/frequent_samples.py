"""Samples of the demo's groups every few seconds, so that planning soon has enough of them.

Belongs here: the thread that takes them. Does not: their content (`fairlead.domain.samples`).
"""

import logging
import threading
from collections.abc import Sequence
from typing import Final, Self

from fairlead.archive import SampleArchive
from fairlead.errors import KafkaUnavailableError, StoreUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from fairlead.store.plans import PlanStore
from fairlead.workflows.sampling import take

_log = logging.getLogger(__name__)

EVERY_S: Final = 3.0


class FrequentSamples:
    """A context in which a thread samples groups.

    Parameters
    ----------
    settings
        Settings with the addresses of Kafka and the warehouse.
    groups
        The groups to sample.
    every_s
        Seconds between samples.
    store
        Stores diagnoses and planning requests; None: they are not stored.
    """

    def __init__(
        self,
        settings: Settings,
        groups: Sequence[str],
        *,
        every_s: float = EVERY_S,
        store: PlanStore | None = None,
    ) -> None:
        self._settings, self._groups, self._every_s = settings, groups, every_s
        self._store = store
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.taken = 0

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop the thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        archive = SampleArchive(self._settings.warehouse_path)
        with KafkaGateway(self._settings.kafka) as gateway:
            while not self._stopped.wait(self._every_s):
                try:
                    take(gateway, archive, self._settings, self._groups, self._store)
                except (KafkaUnavailableError, StoreUnavailableError) as error:
                    _log.warning("a sample failed: %s", error)
                    continue
                self.taken += 1
