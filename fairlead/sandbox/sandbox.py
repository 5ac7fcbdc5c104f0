"""A sandbox: Kafka and Postgres of one state directory, started and stopped together.

Belongs here: the order of starting and stopping, and which process may stop it. Does not: running a
single service (`kafka`, `postgres`).

Services belong to their state directory, not to a process: every process finds those that run. A
`with` block holds the sandbox and stops it at its end; `start` leaves it running until `stop`.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock

from fairlead.errors import SandboxError
from fairlead.sandbox.kafka import KafkaBroker
from fairlead.sandbox.postgres import Postgres
from fairlead.sandbox.processes import exclusively
from fairlead.sandbox.recorded_processes import RecordedProcess
from fairlead.sandbox.services import Services

LOCK_TIMEOUT_S: Final = 900.0


@dataclass(frozen=True)
class _State:
    """Content of `sandbox.json`: addresses, and the process whose block stops the sandbox."""

    services: Services
    holder: RecordedProcess | None


class Sandbox:
    """Embedded Kafka and Postgres under a state directory.

    Parameters
    ----------
    state_dir
        Directory of data, logs and addresses; created if missing. One sandbox per directory.
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
        self._file = self.state_dir / "sandbox.json"
        self._lock = FileLock(self.state_dir / "sandbox.lock")
        self._holds = False

    def start(self) -> Services:
        """Start the services that do not run, and leave them running until `stop`.

        Safe to call from several processes: one starts them, the others wait and share.

        Raises
        ------
        SandboxError
            A service does not start; services that this call started are stopped again.
        ConfigurationError
            No usable Java is found.
        """
        with self._locked():
            return self._start(holder=self._living_holder())

    def stop(self) -> None:
        """Stop running services in order, whichever process started them. Their data stay."""
        if self.state_dir.exists():
            with self._locked():
                self._stop()

    def erase(self) -> None:
        """Stop running services and remove all their data.

        Raises
        ------
        SandboxError
            Another process holds the sandbox.
        """
        if not self.state_dir.exists():
            return
        with self._locked():
            self._refuse_if_held()
            self._stop()
            for service in (self.kafka, self.postgres):
                if service.state_dir.exists():
                    shutil.rmtree(service.state_dir)

    def running(self) -> Services | None:
        """Return the addresses if both services run, else None."""
        state = self._read()
        if state is None or not (self.kafka.process() and self.postgres.process()):
            return None
        return state.services

    def __enter__(self) -> Services:
        with self._locked():
            self._refuse_if_held()
            # Services that `start` left running are shared, and stay. Services of a killed holder
            # are taken over.
            left_by_start = self._left_by_start()
            services = self._start(holder=None if left_by_start else RecordedProcess.of("sandbox"))
            self._holds = not left_by_start
            return services

    def __exit__(self, *exc_info: object) -> None:
        if not self._holds:
            return
        self._holds = False
        with self._locked():
            # Another process may have stopped and restarted the sandbox meanwhile.
            if self._living_holder() == RecordedProcess.of("sandbox"):
                self._stop()

    def _locked(self) -> AbstractContextManager[None]:
        what = f"the sandbox in {self.state_dir}"
        return exclusively(self.state_dir, self._lock, what, timeout_s=LOCK_TIMEOUT_S)

    def _start(self, *, holder: RecordedProcess | None) -> Services:
        missing = [service for service in (self.kafka, self.postgres) if service.process() is None]
        try:
            self.kafka.launch()
            self.postgres.start()  # while Kafka boots
            self.kafka.wait_ready()
            services = Services(
                bootstrap_servers=self.kafka.bootstrap_servers,
                postgres_url=self.postgres.url("fairlead"),
                dagster_postgres_url=self.postgres.url("dagster", driver="psycopg2"),
            )
            self._write(_State(services, holder))
        except BaseException:  # including Ctrl-C
            for service in missing:
                service.stop()
            raise
        return services

    def _stop(self) -> None:
        self._file.unlink(missing_ok=True)
        self.kafka.stop()
        self.postgres.stop()

    def _refuse_if_held(self) -> None:
        if holder := self._living_holder():
            raise SandboxError(
                f"The sandbox in {self.state_dir} is held by process {holder.pid}: end that, or "
                "use another state directory (FAIRLEAD_STATE_DIR)"
            )

    def _left_by_start(self) -> bool:
        """Whether `start` started the sandbox, which then runs until `stop`."""
        state = self._read()
        return state is not None and state.holder is None and self.running() is not None

    def _living_holder(self) -> RecordedProcess | None:
        state = self._read()
        return state.holder if state and state.holder and state.holder.process() else None

    def _read(self) -> _State | None:
        try:
            raw = json.loads(self._file.read_text())
            return _State(
                services=Services(**raw["services"]),
                holder=RecordedProcess(**raw["holder"]) if raw["holder"] else None,
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):  # or of another version
            return None

    def _write(self, state: _State) -> None:
        scratch = self._file.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(state), indent=2) + "\n")
        scratch.replace(self._file)
