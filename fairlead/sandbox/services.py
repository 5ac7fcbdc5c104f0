"""The addresses of a sandbox's services.

Belongs here: the addresses. Belongs elsewhere: starting services.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Services:
    """Addresses of a running sandbox.

    Parameters
    ----------
    bootstrap_servers
        Kafka's addresses for clients: `127.0.0.1:PORT`.
    postgres_url
        libpq URL of the database `fairlead`, reached through a Unix socket.
    dagster_postgres_url
        SQLAlchemy URL of the database `dagster` on the same server. It names the driver psycopg2,
        which dagster-postgres installs and which is not SQLAlchemy's default.
    """

    bootstrap_servers: str
    postgres_url: str
    dagster_postgres_url: str

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which a child process finds this sandbox.

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
