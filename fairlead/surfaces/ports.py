"""At which ports Fairlead is served where nobody chose others.

Belongs here: the numbers, which the command line shows before it imports a server. Does not: what
listens there (`fairlead.surfaces.web.server`, `fairlead.surfaces.up`).
"""

from typing import Final

#: Of metrics and pages: of the range where Prometheus exporters are.
PAGES_PORT: Final = 9464
#: Of Dagster's UI, as Dagster itself has it.
DAGSTER_PORT: Final = 3000
