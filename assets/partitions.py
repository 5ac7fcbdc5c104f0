"""The Dagster partitions of every asset: one for each cohort (groups that are planned together).

The discovery sensor adds and removes partitions. `fairlead.domain.cohorts` assigns groups to
cohorts.
"""

import dagster as dg

COHORT = "cohort"

cohort = dg.DynamicPartitionsDefinition(name=COHORT)
