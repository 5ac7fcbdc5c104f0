"""Default ports, in a module of their own so that commands need not import the servers."""

from typing import Final

#: Port of metrics and pages, in the range of Prometheus exporters.
PAGES_PORT: Final = 9464
#: Port of Dagster's UI: Dagster's own default.
DAGSTER_PORT: Final = 3000
