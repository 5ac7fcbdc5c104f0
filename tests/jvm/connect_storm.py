"""A storm over the workers of a Connect cluster, whose tasks are the members.

Belongs here: what is other than where consumers are processes of their own
(`tests.fairlead.followers.storm`). Does not: what is demanded at the end.
"""

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.sandbox.kafka import HOST
from tests.fairlead.followers.storm import Storm
from tests.waiting import PATIENCE_S, eventually

TASKS = 6
#: What a worker logs that has taken up what it was given.
JOINED = "Finished starting connectors and tasks"


@dataclass(kw_only=True)
class ConnectStorm(Storm):
    """A sink whose tasks the workers share out among themselves."""

    fewest: int = 2
    at_first: int = 3
    most: int = 5
    named: tuple[str, ...] = tuple(f"connector-consumer-sink-{number}" for number in range(TASKS))

    def join(self) -> str | None:
        """Start a worker, wait until it may be given tasks, and tell the first one of the sink."""
        first = not self.workers
        happened = super().join()
        *_, newest = self.workers.values()
        eventually(lambda: JOINED in _read(newest.folder / "errors"), f"{newest} joins")
        if first:
            eventually(lambda: self._told(newest.folder / "port"), "a worker knows the sink")
        return happened

    def _told(self, port: Path) -> bool:
        sink = {
            "connector.class": "FileSink",
            "tasks.max": TASKS,
            "topics": self.topic,
            "consumer.override.group.id": self.group,
        }
        try:
            request = urllib.request.Request(
                f"http://{HOST}:{port.read_text()}/connectors/sink/config",
                json.dumps(sink).encode(),
                {"Content-Type": "application/json"},
                method="PUT",
            )
            urllib.request.urlopen(request, timeout=PATIENCE_S).close()  # noqa: S310
        except (FileNotFoundError, urllib.error.URLError):
            return False
        return True

    def _states(self) -> list[tuple[Path, dict[str, Any]]]:
        return [
            (worker.folder, json.loads(said))
            for worker in list(self.workers.values())
            for number in range(TASKS)
            if (said := _read(worker.folder / f"state-{number}"))
        ]

    def _settled(self) -> bool:
        return len(self._states()) == TASKS and super()._settled()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
