"""The doctor's checks of Postgres: schema, roles, clocks, freezes, the last sample.

Belongs here: what the planner needs from its database. Belongs elsewhere: migrations.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Engine, text

from fairlead.common.words import length
from fairlead.settings import Settings
from fairlead.surfaces.doctor.finding import Finding
from fairlead.surfaces.offers import of_freeze

#: Largest difference between two clocks that needs no warning.
_CLOCKS: Final = timedelta(seconds=5)
_ASK: Final = """
SELECT current_setting('server_version') AS version, session_user AS login,
       clock_timestamp() AS now,
       pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS read_only,
       ARRAY(
           SELECT rolname::text FROM pg_roles
           WHERE rolname LIKE 'fairlead\\_%' AND pg_has_role(session_user, oid, 'MEMBER')
           ORDER BY rolname
       ) AS roles
"""
#: A query that fails if Postgres's disk is full, because it writes a temporary file of 2 MB. It
#: needs no permissions.
_SPILL: Final = "SELECT count(*) FROM generate_series(1, 100000)"


def examine_database(settings: Settings) -> Iterator[Finding]:
    """Check Postgres.

    Raises
    ------
    StoreUnavailableError, ConfigurationError
        Postgres does not answer, its disk is full, or it refuses the login.
    """
    from fairlead.store import migrate  # noqa: PLC0415 - Alembic takes half a second
    from fairlead.store.engine import create_store_engine, transaction  # noqa: PLC0415
    from fairlead.store.freezes import read_freezes  # noqa: PLC0415

    engine = create_store_engine(settings.postgres)
    try:
        with transaction(engine) as connection:
            row = connection.execute(text(_ASK)).one()
            connection.execute(text("SET LOCAL work_mem = '64kB'"))
            connection.execute(text(_SPILL))
        yield _database(row)
        yield _clock(datetime.now(UTC), row.now)
        url = settings.postgres.url.get_secret_value()
        revision, head = migrate.current(url), migrate.head()
        if revision != head:
            detail = f"its revision is {revision or 'none'}, the newest is {head}"
            yield Finding("schema", "failed", detail, "fairlead db upgrade")
            return
        yield Finding("schema", "ok", f"{revision}")
        yield _role(row.login, row.roles)
        for freeze in read_freezes(engine):
            remedy = of_freeze(freeze.group, frozen=True).command
            yield Finding("freeze", "warning", str(freeze), remedy)
        yield _last_sample(engine)
    finally:
        engine.dispose()


def _database(row: Any) -> Finding:
    detail = f"Postgres {row.version}, as {row.login}"
    if row.read_only:
        why = "it is a standby" if row.standby else "default_transaction_read_only is on"
        how = "name the primary in postgres.url"
        return Finding("database", "failed", f"{detail}: it accepts no changes: {why}", how)
    return Finding("database", "ok", detail)


def _clock(ours: datetime, there: datetime) -> Finding:
    apart = abs(ours - there)
    detail = f"the clocks here and in the database differ by {apart.total_seconds():.1f} s"
    if apart > _CLOCKS:
        return Finding("clocks", "warning", detail, "synchronise both clocks by NTP")
    return Finding("clocks", "ok", detail)


def _role(login: str, roles: Collection[str]) -> Finding:
    if not roles:
        detail = f"{login} has no role of Fairlead"
        how = f"as the owner of the schema: GRANT fairlead_planner TO {login};"
        return Finding("role", "failed", detail, how)
    names = ", ".join(roles)
    if "fairlead_planner" not in roles:
        detail = f"{login} has only {names}: it may not plan or publish"
        return Finding("role", "warning", detail)
    return Finding("role", "ok", f"{login} has {names}")


def _last_sample(engine: Engine) -> Finding:
    from fairlead.store.monitoring import last_sample  # noqa: PLC0415 - as above

    last = last_sample(engine)
    remedy = "run `fairlead up` or `fairlead sample`"
    if last is None:
        return Finding("samples", "warning", "no offset sample was taken yet", remedy)
    detail = f"the last sample was taken {length(datetime.now(UTC) - last.began)} ago"
    if last.overdue:
        detail += f"; one is due every {last.interval.total_seconds():.0f} s"
        return Finding("samples", "warning", detail, remedy)
    return Finding("samples", "ok", detail)
