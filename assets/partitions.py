"""The partitions of every asset: cohorts of consumer groups planned together.

The discovery sensor adds and removes them. Which group belongs to which is
`fairlead.domain.cohorts`.
"""

import dagster as dg

COHORT = "cohort"

cohort = dg.DynamicPartitionsDefinition(name=COHORT)
