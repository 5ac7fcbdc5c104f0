"""The pipeline's steps as Dagster assets: one module per step. The library does the work.

The steps are `group_offsets`, then `candidate_plans` and `partition_lag`, then `assignment_plan`,
`published_plan` and `plan_adoption`. They share `checks`, `partitions`, `resources`,
`retry_policy`, `about` (owners and tags of definitions), `shown` (metadata of each step in
the UI) and `presentation` (the format of the values in this metadata).

Modules here must not use `from __future__ import annotations`, since Dagster reads annotations as
types.
"""

import warnings

import dagster as dg

# We use these beta features of Dagster on purpose, and lock Dagster's version. Without this filter,
# sixty warnings in each process would hide the rest of the log.
warnings.filterwarnings(
    "ignore",
    r".*(`owners`|`backfill_policy`).* is currently in beta",
    category=dg.BetaWarning,
)
