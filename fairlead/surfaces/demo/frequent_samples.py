"""Looks at the demo's groups, far more often than any real cluster needs: its planning is soon.

Belongs here: taking them beside everything else. Does not: what a look is
(`fairlead.domain.samples`).
"""

import logging
import threading
from collections.abc import Sequence
from typing import Final, Self

from fairlead.archive import LookArchive
from fairlead.errors import KafkaUnavailableError, StoreUnavailableError
from fairlead.kafka.gateway import KafkaGateway
from fairlead.settings import Settings
from fairlead.store.plans import PlanStore
from fairlead.workflows.looking import take

_log = logging.getLogger(__name__)

EVERY_S: Final = 3.0


class Looking:
    """Looks at groups from when it is entered until it is left.

    Parameters
    ----------
    settings
        Where Kafka and the warehouse are.
    groups
        At which groups.
    every_s
        Seconds between looks.
    store
        Where diagnoses go, and what is called for from; None: nobody asks.
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
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        archive = LookArchive(self._settings.warehouse_path)
        with KafkaGateway(self._settings.kafka) as gateway:
            while not self._stopped.wait(self._every_s):
                try:
                    take(gateway, archive, self._settings, self._groups, self._store)
                except (KafkaUnavailableError, StoreUnavailableError) as error:
                    _log.warning("a look failed, the next one may not: %s", error)
                    continue
                self.taken += 1
