"""The engine chooses its driver, hides passwords, and translates errors."""

import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from fairlead.errors import ConfigurationError, FairleadError, StoreUnavailableError
from fairlead.sandbox import Services
from fairlead.settings import PostgresSettings
from fairlead.store.engine import create_store_engine, transaction
from tests.waiting import eventually


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2"]
)
def test_driver_is_psycopg_3_for_any_url(scheme: str) -> None:
    """Even if the URL names psycopg2, the driver is psycopg 3, which the store's COPY needs."""
    engine = create_store_engine(PostgresSettings(url=SecretStr(f"{scheme}://user@host/db")))
    assert engine.url.drivername == "postgresql+psycopg"


@pytest.mark.parametrize(
    "url", ["mysql://u:hunter2@h/db", "hunter2", "postgresql://u:hunter2@h:x/"]
)
def test_invalid_url_is_refused_without_repeating_it(url: str) -> None:
    """The error for an invalid URL does not repeat the URL, which may contain a password."""
    with pytest.raises(ConfigurationError) as error:
        create_store_engine(url)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "secret", ["a@hunter2", "@hunter2", "a@hunter2:5", "a@b/hunter2", "a@hunter2?b", "a@b@hunter2"]
)
def test_password_with_an_at_sign_is_refused(secret: str) -> None:
    """An unescaped @ is refused: messages would show the rest of the password as the host."""
    with pytest.raises(ConfigurationError, match="write %40") as error:
        create_store_engine(f"postgresql://user:{secret}@127.0.0.1:1/plans")
    assert "hunter2" not in str(error.value)


def test_error_of_an_absent_database_has_no_password() -> None:
    """If no database answers, the error is transient and names the host, but not the password."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        engine = create_store_engine(f"postgresql://user:hunter2@127.0.0.1:{port}/plans")
        with (
            pytest.raises(
                StoreUnavailableError, match=r"Postgres at 127\.0\.0\.1:\d+/plans"
            ) as error,
            transaction(engine),
        ):
            pass
    assert "hunter2" not in str(error.value) + repr(engine)


@pytest.fixture
def listed_user(services: Services, unique_name: str) -> Iterator[str]:
    """Return a user who needs a password; all other users connect without one."""
    user = sql.Identifier(unique_name)
    with psycopg.connect(services.postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'right'").format(user))
        (path,) = connection.execute("SHOW hba_file").fetchone() or ("",)
        hba = Path(path)
        before = hba.read_text()
        hba.write_text(f'local all "{unique_name}" scram-sha-256\n{before}')
        try:
            connection.execute("SELECT pg_reload_conf()")
            yield unique_name
        finally:
            hba.write_text(before)
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(sql.SQL("DROP ROLE {}").format(user))


def refusal_of(url: str) -> FairleadError | None:
    """Connect to a database; return the error, or None if there is none."""
    engine = create_store_engine(url)
    try:
        with transaction(engine):
            return None
    except FairleadError as error:
        return error
    finally:
        engine.dispose()


@pytest.mark.postgres
def test_error_of_a_wrong_database_password(services: Services, listed_user: str) -> None:
    """A wrong password is a permanent error that names the user and the setting."""
    wrong = services.postgres_url.replace("postgres@", f"{listed_user}:hunter2@")
    absent = services.postgres_url.replace("postgres@", f"{listed_user}@")
    eventually(lambda: refusal_of(absent) is not None, "the server has read its file again")
    error = refusal_of(wrong)
    assert isinstance(error, ConfigurationError)
    assert f'password authentication failed for user "{listed_user}"' in str(error)
    assert "the password in postgres.url" in str(error)
    assert "hunter2" not in str(error)
    error = refusal_of(absent)
    assert isinstance(error, ConfigurationError)
    assert "Name the password in postgres.url" in str(error)


@pytest.mark.postgres
def test_a_misspelt_option_of_the_url_is_named(migrated: str) -> None:
    """A misspelt option in the URL causes an error that names the option, without a traceback."""
    error = refusal_of(f"{migrated}&aplication_name=x")
    assert isinstance(error, ConfigurationError)
    assert "aplication_name" in str(error)
