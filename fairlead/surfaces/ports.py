"""Default ports, apart from the servers so that the command line need not import these."""

from typing import Final

#: Metrics and pages, in the range of Prometheus exporters.
PAGES_PORT: Final = 9464
#: Dagster's UI: the default of Dagster.
DAGSTER_PORT: Final = 3000
