"""The embedded Postgres: starting, stale locks, long paths, and errors."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from fairlead.errors import SandboxError
from fairlead.sandbox.postgres import Postgres

pytestmark = pytest.mark.postgres


@pytest.fixture
def postgres(own_services: Path) -> Iterator[Postgres]:
    """Return a server that tests may end."""
    postgres = Postgres(own_services / "postgres")
    yield postgres
    postgres.stop()


def test_stale_lock_files_are_no_obstacle(postgres: Postgres) -> None:
    """A server starts although old lock files name the pid of another, running program."""
    postgres.start()
    postgres.kill()
    data, socket = postgres.state_dir / "data", postgres.state_dir / "socket"
    locks = [data / "postmaster.pid", socket / ".s.PGSQL.5432.lock"]
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, user=data.stat().st_uid) as other:
        for lock in locks:
            lines = lock.read_text().splitlines()
            lock.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        postgres.start()
    assert postgres.process() is not None


def test_drivers_connect_at_long_paths_with_spaces(tmp_path: Path) -> None:
    """All drivers connect, although the path has spaces and is too long for a Unix socket."""
    deep = tmp_path / ("a long name, with spaces & signs/" * 5)
    deep.mkdir(parents=True)
    postgres = Postgres(deep / "postgres")
    try:
        postgres.start()
        psycopg.connect(postgres.url("fairlead")).close()
        for driver in ("psycopg", "psycopg2"):
            engine = sa.create_engine(postgres.url("dagster", driver=driver))
            with engine.connect() as connection:
                found = connection.execute(sa.text("SELECT current_database()")).scalar()
            engine.dispose()
            assert found == "dagster"
    finally:
        postgres.stop()


def test_server_that_ends_early_is_reported_with_its_log(postgres: Postgres) -> None:
    """If Postgres refuses a setting, the error has the end of Postgres's log."""
    postgres.start()
    postgres.stop()
    configuration = postgres.state_dir / "data" / "postgresql.conf"
    before = configuration.read_text()
    configuration.write_text(f"{before}max_connections = many\n")
    with pytest.raises(SandboxError, match=r"ended while it was starting(.|\n)*max_connections"):
        postgres.start()
    configuration.write_text(before)


def test_unfinished_data_directory_is_created_again(postgres: Postgres) -> None:
    """If the initialisation was killed, the next start initialises the data again."""
    if (postgres.state_dir / "data").exists():
        shutil.rmtree(postgres.state_dir / "data")
    unfinished = postgres.state_dir / "data.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    postgres.start()
    assert postgres.process() is not None
