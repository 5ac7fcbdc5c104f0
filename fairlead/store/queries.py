"""Functions that the modules of queries share: rows as dicts, and the names of groups.

Does not belong here: queries on one subject (`history_queries`, `lag_queries`, `event_queries`,
`group_history`).
"""

from typing import Any, Final

from sqlalchemy import Engine, text

from fairlead.common.nearest import hint
from fairlead.errors import GroupError
from fairlead.store.engine import transaction

Row = dict[str, Any]

#: Maximum number of groups whose names are compared with a mistyped name.
_NAMES: Final = 20_000


def read_rows(engine: Engine, statement: str, **parameters: Any) -> list[Row]:
    """Run a statement in its own transaction, and return the rows.

    Raises the errors of `transaction`.
    """
    with transaction(engine) as connection:
        result = connection.execute(text(statement), parameters)
        keys = tuple(result.keys())
        return [dict(zip(keys, row, strict=True)) for row in result.all()]


def require_group(engine: Engine, group: str) -> None:
    """Raise GroupError if nothing is stored about a group; the message suggests a similar name."""
    statement = "SELECT 1 FROM fairlead_raw.consumer_group WHERE group_id = :group"
    if not read_rows(engine, statement, group=group):
        names = read_group_names(engine, limit=_NAMES)
        advice = hint(group, names, "`fairlead groups` lists the known groups")
        raise GroupError(f"group {group}: nothing is stored about it{advice}")


def read_group_names(engine: Engine, prefix: str = "", *, limit: int) -> list[str]:
    """Return the names of groups that start with a prefix; times out after a second."""
    statement = (
        "SELECT group_id FROM fairlead_raw.consumer_group WHERE starts_with(group_id, :prefix)"
        " ORDER BY group_id LIMIT :limit"
    )
    with transaction(engine) as connection:
        connection.execute(text("SET LOCAL statement_timeout = '1s'"))
        return list(connection.scalars(text(statement), {"prefix": prefix, "limit": limit}))
