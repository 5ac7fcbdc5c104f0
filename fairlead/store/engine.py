"""Access to Postgres: the engine, transactions, and Fairlead's errors for database errors.

Belongs here: drivers, time-outs, and the meaning of database errors. Belongs elsewhere: queries.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from fairlead.errors import (
    ConfigurationError,
    FairleadError,
    PlanStateError,
    StoreRefusesError,
    StoreUnavailableError,
    TamperedPlanError,
    UnstorableError,
)
from fairlead.settings import PostgresSettings
from fairlead.store.watched import WatchedConnection

# After it raises an error, psycopg also logs warnings, for example that a pipeline was aborted.
logging.getLogger("psycopg").setLevel(logging.ERROR)

_CONNECT_TIMEOUT_S: Final = 10
_SESSION: Final = {
    "timezone": "UTC",
    "lock_timeout": "60s",
    "statement_timeout": "10min",
    # If a planner hangs, its lock on a group ends after this time. Sending to Kafka takes less.
    "idle_in_transaction_session_timeout": "5min",
    # Compiling a query on a table with a partition per day takes much longer than running it.
    "jit": "off",
}
# SQLSTATEs that Fairlead's triggers raise, and their exceptions.
_BY_SQLSTATE: Final[dict[str, type[FairleadError]]] = {
    "FL001": PlanStateError,
    "FL002": PlanStateError,
    "FL003": TamperedPlanError,
    "FL004": PlanStateError,
    "FL005": ConfigurationError,
    "FL006": PlanStateError,
}
# SQLSTATEs for a value that is too long for an index or has invalid characters.
_UNSTORABLE: Final = frozenset({"54000", "22021", "22P05"})
#: SQLSTATEs of a database that accepts no changes, each with advice.
_NO_CHANGES: Final = {
    "25006": "name the primary in postgres.url",
    "53100": "make room on the disk of its data directory",
}
#: Prefixes of SQLSTATEs for a failed connection, or a server that is shutting down.
_AWAY: Final = ("08", "57P0")
_NOT_ALLOWED: Final = "42501"
#: SQLSTATEs of a session that ended because its transaction was open too long.
_CUT_OFF: Final = frozenset({"25P03", "25P04"})
# Messages of libpq when a login fails, which have no SQLSTATE, each with advice.
_REFUSALS: Final = {
    "password authentication failed": "Are the user and the password in postgres.url right?",
    "no password supplied": "Name the password in postgres.url",
    "certificate verify failed": "Is sslrootcert in postgres.url the authority that signed the"
    " server's certificate?",
    "does not match host name": "Name the host in postgres.url as the server's certificate does",
    "root certificate file": "Is sslrootcert in postgres.url right?",
}
_NOT_MIGRATED: Final = frozenset({"3F000", "42P01", "42703", "42883"})


def create_store_engine(
    database: PostgresSettings | str, *, connect_timeout_s: int = _CONNECT_TIMEOUT_S
) -> Engine:
    """Create the engine for Fairlead's database, which connects at first use.

    Parameters
    ----------
    database
        The settings, or a URL of libpq or SQLAlchemy. The driver is always psycopg 3: SQLAlchemy's
        default has changed between releases, and Dagster installs psycopg2.
    connect_timeout_s
        Time-out for a new connection (at least 2 seconds, libpq's minimum), and for the check
        whether a server that is silent during a query still answers.

    Raises
    ------
    ConfigurationError
        The URL is not a Postgres URL. The message omits the URL, which may have a password.

    Examples
    --------
    >>> create_store_engine("postgresql://fairlead:secret@db/fairlead").url
    postgresql+psycopg://fairlead:***@db/fairlead
    """
    url = _driver_url(database if isinstance(database, str) else database.url.get_secret_value())
    options_of_url = url.query.get("options", ())
    options = [options_of_url] if isinstance(options_of_url, str) else list(options_of_url)
    session = [f"-c {name}={value}" for name, value in _SESSION.items()]
    engine = create_engine(
        url,
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",  # a query that waited for a lock sees new rows
        hide_parameters=True,  # plan documents do not belong in messages
        connect_args={
            "application_name": "fairlead",
            "client_encoding": "utf8",
            "connect_timeout": connect_timeout_s,
            "options": " ".join(session + options),  # options of the URL override the others
        },
    )

    @event.listens_for(engine, "do_connect")
    def connect(_: Any, __: Any, arguments: Any, named: Any) -> WatchedConnection:
        connection = WatchedConnection.connect(*arguments, **named)
        connection.patience_s = connect_timeout_s
        return connection

    return engine


def _driver_url(text: str) -> URL:
    # The first @ ends the password, in libpq as well. After an @ in the password, the rest of the
    # password would be taken for the host and shown in messages.
    place, _, query = text.partition("?")
    if place.count("@") > 1 or "@" in query.partition("=")[0]:
        raise ConfigurationError(
            "postgres.url has more than one @: write %40 for an @ in the password or in the user's"
            " name"
        )
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # the port is not a number
        raise ConfigurationError(
            "postgres.url is not a database URL such as postgresql://user@host/database"
        ) from None  # the cause may repeat the URL
    if url.get_backend_name() not in {"postgresql", "postgres"}:
        raise ConfigurationError(
            f"postgres.url is a {url.get_backend_name()} URL, not a Postgres one"
        )
    return url.set(drivername="postgresql+psycopg")


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Open a connection, commit at the end, roll back on any error.

    Raises
    ------
    StoreUnavailableError
        The database does not answer or ended the connection.
    StoreRefusesError
        The database accepts no changes, or a lock was not free in time.
    ConfigurationError
        The schema is missing or older than this version of Fairlead. Or the database's user lacks
        a right.
    PlanStateError, TamperedPlanError
        A trigger refused a change to a plan.
    UnstorableError
        Postgres does not accept a value, such as a name too long for an index.
    """
    with store_errors(engine.url), engine.begin() as connection:
        yield connection


@contextmanager
def store_errors(url: URL) -> Iterator[None]:
    """Convert database errors to the errors that `transaction` documents."""
    try:
        yield
    except DBAPIError as error:
        raise _translated(error, error.orig, url) from error
    except psycopg.Error as error:  # COPY uses the driver directly
        raise _translated(error, error, url) from error


def place(url: URL) -> str:
    """Return a database's host, port and name for messages.

    Examples
    --------
    >>> place(make_url("postgresql://db:5433/fairlead")), place(make_url("postgresql:///x?host=/run"))
    ('db:5433/fairlead', '/run/x')
    """
    port = f":{url.port}" if url.port else ""
    return f"{url.host or url.query.get('host', 'localhost')}{port}/{url.database}"


def _translated(error: Exception, cause: BaseException | None, url: URL) -> Exception:
    """Return Fairlead's error for a database error; errors that are bugs are returned unchanged."""
    sqlstate = getattr(cause, "sqlstate", None)
    message = str(cause).partition("\n")[0]
    if sqlstate in _BY_SQLSTATE:
        return _BY_SQLSTATE[sqlstate](message)
    where = place(url)
    if sqlstate in _NOT_MIGRATED:
        return ConfigurationError(
            f"The database {where} does not have this version's schema ({message}): "
            "run `fairlead db upgrade`"
        )
    if sqlstate == _NOT_ALLOWED:
        return ConfigurationError(
            f"The database {where} refuses {url.username or 'this user'}: {message}. Grant it a"
            " role: fairlead_planner, fairlead_approver, fairlead_web or fairlead_reader"
        )
    if sqlstate in _UNSTORABLE or (isinstance(cause, psycopg.DataError) and sqlstate is None):
        return UnstorableError(f"Postgres does not accept a value: {message}")
    if sqlstate in _NO_CHANGES:
        return StoreRefusesError(
            f"The database {where} accepts no changes ({message}): {_NO_CHANGES[sqlstate]}"
        )
    failed = isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)
    if failed or sqlstate in _CUT_OFF:
        answers = sqlstate is not None and not sqlstate.startswith(_AWAY)
        kind = StoreRefusesError if answers else StoreUnavailableError
        error = _refusal(where, str(cause)) or kind(f"Postgres at {where}: {message}")
    elif isinstance(cause, psycopg.ProgrammingError) and sqlstate is None and "option" in message:
        error = ConfigurationError(f"postgres.url: {message}")
    return error


def _refusal(where: str, message: str) -> ConfigurationError | None:
    """Return an error with advice if a server refused the login; None otherwise.

    The message of libpq has a line for each address that it tried.
    """
    for line in message.splitlines():
        for refusal, advice in _REFUSALS.items():
            if refusal in line:
                return ConfigurationError(f"Postgres at {where}: {line.strip()}. {advice}")
    return None
