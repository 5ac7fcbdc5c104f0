"""Where the services of a sandbox are reached.

Belongs here: the addresses, as data. Does not: starting anything.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Services:
    """Addresses of a running sandbox.

    Parameters
    ----------
    bootstrap_servers
        Kafka's, as every client takes them: `127.0.0.1:PORT`.
    postgres_url
        libpq URL of the database `fairlead`, by a Unix socket.
    dagster_postgres_url
        SQLAlchemy URL of the database `dagster` on the same server. It names the driver that
        dagster-postgres brings, psycopg2, which is not SQLAlchemy's default.
    """

    bootstrap_servers: str
    postgres_url: str
    dagster_postgres_url: str

    def environment(self) -> dict[str, str]:
        """Return the variables by which a child process finds this sandbox.

        Examples
        --------
        >>> services = Services("127.0.0.1:9092", "postgresql://a", "postgresql+psycopg2://b")
        >>> services.environment()["FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS"]
        '127.0.0.1:9092'
        """
        return {
            "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "FAIRLEAD_POSTGRES__URL": self.postgres_url,
            "DAGSTER_POSTGRES_URL": self.dagster_postgres_url,
        }
