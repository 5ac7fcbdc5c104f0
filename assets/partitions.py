"""The partitions of every asset: cohorts of consumer groups planned together.

The discovery sensor adds and removes them. `fairlead.domain.cohorts` assigns groups to
cohorts.
"""

import dagster as dg

COHORT = "cohort"

cohort = dg.DynamicPartitionsDefinition(name=COHORT)
