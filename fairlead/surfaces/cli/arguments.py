"""Arguments that commands share, shell completion, and access to the database.

Belongs here: code that several command groups share. Belongs elsewhere: queries
(`fairlead.store.queries`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fairlead.errors import FairleadError, StoreRefusesError, StoreUnavailableError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from fairlead.settings import Settings

#: Largest number of a plan version: Postgres's largest integer.
_LAST_VERSION: Final = 2**31 - 1
#: Limits of shell completion: seconds to wait for the database; maximum number of suggestions.
_COMPLETION_TIMEOUT_S: Final = 2
_COMPLETIONS: Final = 100
#: Maximum number of groups that a mistyped name is compared with.
_ALL: Final = 20_000


def read_settings() -> "Settings":
    """Read the settings. Pydantic is imported only when a command runs, for a fast start."""
    from fairlead.settings import load_settings

    return load_settings()


@contextmanager
def opened_engine(connect_timeout_s: int | None = None) -> Iterator["Engine"]:
    """Connect to the database that the settings name; disconnect at the end of the block.

    Parameters
    ----------
    connect_timeout_s
        Seconds to wait for a connection; None: the default.

    Raises
    ------
    StoreUnavailableError
        The database does not answer; the message names the setting with the database's address.
    StoreRefusesError
        The database answers, but accepts no changes.
    """
    from fairlead.settings import set_by
    from fairlead.store.engine import create_store_engine

    patience = {} if connect_timeout_s is None else {"connect_timeout_s": connect_timeout_s}
    engine = create_store_engine(read_settings().postgres, **patience)
    try:
        yield engine
    except StoreRefusesError:
        raise
    except StoreUnavailableError as error:
        where = set_by("postgres.url", "FAIRLEAD_POSTGRES__URL")
        raise StoreUnavailableError(f"{error}. Is Postgres running? Is {where} right?") from error
    finally:
        engine.dispose()


def known_groups(prefix: str = "", limit: int = _ALL) -> list[str]:
    """Return the groups in the database whose names start with a prefix.

    The list is empty if the database does not answer.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from fairlead.store.queries import read_group_names

    try:
        with opened_engine(_COMPLETION_TIMEOUT_S) as engine:
            return read_group_names(engine, prefix, limit=limit)
    except (FairleadError, SQLAlchemyError):
        return []


def complete_group(incomplete: str) -> list[str]:
    """Return the groups whose names start with the typed text."""
    return known_groups(incomplete, _COMPLETIONS)


def parse_moment(text: str) -> datetime:
    """Parse a date or time in ISO 8601; a time without a time zone is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not an ISO 8601 date or time") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def known_text(name: str | None) -> str | None:
    """Refuse a name that is not valid UTF-8: neither Kafka nor Postgres accepts such a name."""
    try:
        (name or "").encode()
    except UnicodeEncodeError as error:
        raise typer.BadParameter("is not UTF-8 text") from error
    return name


def _reason(reason: str) -> str:
    if not reason.strip():
        raise typer.BadParameter("give a reason: the history shows it")
    known_text(reason)
    return reason


Group = Annotated[
    str,
    typer.Argument(help="The consumer group.", autocompletion=complete_group, callback=known_text),
]
Version = Annotated[int, typer.Argument(help="Version of the plan.", min=1, max=_LAST_VERSION)]
NewestVersion = Annotated[
    int | None,
    typer.Argument(help="Version of the plan. Default: the newest.", min=1, max=_LAST_VERSION),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Reason = Annotated[
    str, typer.Option("--reason", help="The reason; the history shows it.", callback=_reason)
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Limit = Annotated[int, typer.Option(help="Maximum number of rows, newest first.", min=1)]
Since = Annotated[
    datetime | None,
    typer.Option(
        parser=parse_moment,
        metavar="TIME",
        help="From this moment: ISO 8601, UTC if without zone.",
    ),
]
At = Annotated[
    datetime | None,
    typer.Option(
        parser=parse_moment,
        metavar="TIME",
        help="The last snapshot before this moment. Default: the newest.",
    ),
]
