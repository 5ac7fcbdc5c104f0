"""A sandbox: Kafka and Postgres of one state directory, started and stopped together.

Belongs here: the order of starting and stopping. Belongs elsewhere: running a single service
(`kafka`, `postgres`).

Services belong to their state directory, not to a process: every process finds running services.
The end of a `with` block stops the sandbox, unless it already ran before the block. `start` leaves
the sandbox running until `stop`.
"""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.postgres import Postgres
from fairlead.sandbox.processes import exclusively
from fairlead.sandbox.services import Services


class Sandbox:
    """Embedded Kafka and Postgres under a state directory.

    Parameters
    ----------
    state_dir
        Directory for data and logs; created if missing. Each directory has one sandbox.
    progress
        Called with a line for the user when a step takes long.

    Examples
    --------
    ::

        with Sandbox(Path(".fairlead")) as services:
            print(services.bootstrap_servers)
    """

    def __init__(
        self, state_dir: Path, *, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        self.state_dir = state_dir.resolve()
        self.kafka = KafkaBroker(self.state_dir / "kafka", progress=progress, assignor=True)
        self.postgres = Postgres(self.state_dir / "postgres")
        self._stops = False

    def start(self) -> Services:
        """Start the services that do not run, and leave them running until `stop`.

        If several processes call this at the same time, one of them starts the services, and the
        others wait and use the same services.

        Raises
        ------
        SandboxError
            A service does not start; services that this call started are stopped again.
        ConfigurationError
            There is no usable Java.
        """
        with self._locked():
            return self._start()

    def stop(self) -> None:
        """Stop running services, even if another process started them, and keep their data."""
        if self.state_dir.exists():
            with self._locked():
                self.kafka.stop()
                self.postgres.stop()

    def erase(self) -> None:
        """Stop running services and remove all their data."""
        if self.state_dir.exists():
            with self._locked():
                for service in (self.kafka, self.postgres):
                    service.stop()
                    if service.state_dir.exists():
                        shutil.rmtree(service.state_dir)

    def running(self) -> Services | None:
        """Return the addresses if both services run; otherwise None."""
        return self._services() if self.kafka.process() and self.postgres.process() else None

    def __enter__(self) -> Services:
        with self._locked():
            self._stops = self.running() is None
            return self._start()

    def __exit__(self, *exc_info: object) -> None:
        if self._stops:
            self.stop()

    def _locked(self) -> AbstractContextManager[None]:
        return exclusively(self.state_dir, "sandbox.lock", f"the sandbox in {self.state_dir}")

    def _start(self) -> Services:
        missing = [service for service in (self.kafka, self.postgres) if service.process() is None]
        try:
            self.kafka.launch()
            self.postgres.start()  # while Kafka starts
            self.kafka.wait_ready()
        except BaseException:  # also after Ctrl-C
            for service in missing:
                service.stop()
            raise
        return self._services()

    def _services(self) -> Services:
        return Services(
            bootstrap_servers=self.kafka.bootstrap_servers,
            postgres_url=self.postgres.url("fairlead"),
            dagster_postgres_url=self.postgres.url("dagster", driver="psycopg2"),
        )
