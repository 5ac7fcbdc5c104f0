"""An embedded Kafka and Postgres for the demo, the tests and first use, without Docker or root.

The machine needs Java and Python. Postgres comes from a wheel, Apache Kafka from its own jars. Each
state directory has one sandbox, whose running services are found again and never started twice.
With a real cluster, whose addresses are in `fairlead.settings`, this package is not used.
"""

from fairlead.sandbox.sandbox import Sandbox
from fairlead.sandbox.services import Services

__all__ = ["Sandbox", "Services"]
