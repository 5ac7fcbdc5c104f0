"""The engine names its driver, keeps secrets, and says what went wrong in our words."""

import socket

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine, text

from fairlead.errors import ConfigurationError, StoreUnavailableError
from fairlead.settings import PostgresSettings
from fairlead.store import PlanStore, create_store_engine
from fairlead.store.engine import transaction


@pytest.mark.parametrize(
    "scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2"]
)
def test_the_driver_is_psycopg_3_whatever_the_url_names(scheme: str) -> None:
    """Dagster brings psycopg2; the store's COPY needs psycopg 3."""
    engine = create_store_engine(PostgresSettings(url=SecretStr(f"{scheme}://user@host/db")))
    assert engine.url.drivername == "postgresql+psycopg"


@pytest.mark.parametrize(
    "url", ["mysql://u:hunter2@h/db", "hunter2", "postgresql://u:hunter2@h:x/"]
)
def test_a_url_of_something_else_is_refused_without_repeating_it(url: str) -> None:
    """What is no Postgres URL may still hold a password."""
    with pytest.raises(ConfigurationError) as error:
        create_store_engine(url)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "secret", ["a@hunter2", "@hunter2", "a@hunter2:5", "a@b/hunter2", "a@hunter2?b", "a@b@hunter2"]
)
def test_a_password_with_an_at_sign_is_refused_without_its_tail(secret: str) -> None:
    """What is behind the first @ would be the host, which every message names."""
    with pytest.raises(ConfigurationError, match="written %40") as error:
        create_store_engine(f"postgresql://user:{secret}@127.0.0.1:1/plans")
    assert "hunter2" not in str(error.value)


def test_an_at_sign_that_is_written_as_it_should_be_is_taken() -> None:
    """In the password, and in what the query says."""
    engine = create_store_engine("postgresql://user:a%40b@host/db?application_name=me@here")
    assert (engine.url.password, engine.url.host) == ("a@b", "host")


def test_an_absent_database_is_unavailable_and_its_password_unspoken() -> None:
    """Nobody listens: an error worth a retry, which names the place but not the password."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        engine = create_store_engine(f"postgresql://user:hunter2@127.0.0.1:{port}/plans")
        with (
            pytest.raises(StoreUnavailableError, match=r"Postgres at 127\.0\.0\.1/plans") as error,
            transaction(engine),
        ):
            pass
    assert "hunter2" not in str(error.value) + repr(engine)


@pytest.mark.postgres
def test_a_database_without_the_schema_says_what_to_run(database: str) -> None:
    """A store on a database that was never migrated."""
    engine = create_store_engine(database)
    with pytest.raises(ConfigurationError, match="fairlead db upgrade"):
        PlanStore(engine).published("orders")
    engine.dispose()


@pytest.mark.postgres
def test_sessions_are_bounded_and_in_utc(engine: Engine) -> None:
    """No session waits for a lock, or holds one idly, for ever."""
    with transaction(engine) as connection:
        setting = {
            name: connection.scalar(text("SELECT current_setting(:name)"), {"name": name})
            for name in (
                "application_name",
                "timezone",
                "lock_timeout",
                "idle_in_transaction_session_timeout",
            )
        }
    assert setting == {
        "application_name": "fairlead",
        "timezone": "UTC",
        "lock_timeout": "1min",
        "idle_in_transaction_session_timeout": "5min",
    }


@pytest.mark.postgres
def test_options_of_the_url_win(database: str) -> None:
    """Whoever sets a time-out in the URL means it."""
    separator = "&" if "?" in database else "?"
    engine = create_store_engine(f"{database}{separator}options=-c%20lock_timeout%3D7s")
    with transaction(engine) as connection:
        assert connection.scalar(text("SHOW lock_timeout")) == "7s"
    engine.dispose()


@pytest.mark.postgres
def test_a_connection_that_was_ended_is_replaced(store_url: str, engine: Engine) -> None:
    """A call on an ended connection is an error worth a retry, and the retry works."""

    def lose_the_connection() -> None:
        with (
            transaction(engine) as connection,
            psycopg.connect(store_url, autocommit=True) as other,
        ):
            pid = connection.scalar(text("SELECT pg_backend_pid()"))
            other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
            connection.execute(text("SELECT 1"))

    with pytest.raises(StoreUnavailableError):
        lose_the_connection()
    assert PlanStore(engine).published("orders") is None
