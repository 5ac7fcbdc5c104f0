"""Postgres logins with given roles, for tests of permissions."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

#: Function that creates a login with the given roles and returns the database's URL for it.
Login = Callable[..., str]


@contextmanager
def logins(url: str) -> Iterator[Login]:
    """Yield a function that creates logins. All of them are dropped at the end."""
    made: list[sql.Identifier] = []
    with psycopg.connect(url, autocommit=True) as superuser:

        def make(*roles: str, name: str = "person") -> str:
            name = f"{name}_{uuid.uuid4().hex[:8]}"
            made.append(sql.Identifier(name))
            superuser.execute(sql.SQL("CREATE ROLE {} LOGIN").format(made[-1]))
            for role in roles:
                superuser.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), made[-1]))
            if not roles:
                database = sql.Identifier(superuser.info.dbname)
                superuser.execute(
                    sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, made[-1])
                )
            parts = urlsplit(url)
            return parts._replace(netloc=f"{name}@{parts.netloc.partition('@')[2]}").geturl()

        yield make
        for login in made:
            superuser.execute(sql.SQL("DROP OWNED BY {}").format(login))
            superuser.execute(sql.SQL("DROP ROLE {}").format(login))
