"""An embedded Kafka and Postgres for the demo, the tests and first use: no Docker, no root.

Postgres comes from a wheel, Apache Kafka from its own jars; a machine needs Java and Python. One
state directory is one sandbox: running services are found again, never started twice. Real clusters
need none of this; `fairlead.settings` has their addresses.
"""

from fairlead.sandbox.sandbox import Sandbox
from fairlead.sandbox.services import Services

__all__ = ["Sandbox", "Services"]
