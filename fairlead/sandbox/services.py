"""Where the services of a sandbox are reached.

Belongs here: the addresses, as data. Does not: starting anything.
"""

import os
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
        libpq URL of the database `dagster` on the same server.
    """

    bootstrap_servers: str
    postgres_url: str
    dagster_postgres_url: str

    def environment(self) -> dict[str, str]:
        """Return the environment in which a child process finds this sandbox, settings included.

        `DAGSTER_POSTGRES_URL` is for `dagster.yaml`, which reads it through `env:`.
        """
        return {
            **os.environ,
            "FAIRLEAD_KAFKA__BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "FAIRLEAD_POSTGRES__URL": self.postgres_url,
            "DAGSTER_POSTGRES_URL": self.dagster_postgres_url,
        }
