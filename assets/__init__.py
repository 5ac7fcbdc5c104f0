"""The pipeline's steps as Dagster assets: one module per step, each one call into the library.

The steps are `group_offsets`, then `candidate_plans` and `partition_lag`, then `assignment_plan`,
`published_plan` and `plan_adoption`. They share `checks`, `partitions`, `resources`,
`retry_policy`, `about` (owners and tags of definitions), `shown` (metadata of each step in
the UI) and `presentation` (the format of values there).

Modules here must not use `from __future__ import annotations`: Dagster reads the annotations.
"""

import warnings

import dagster as dg

# We use beta features of Dagster knowingly, with a locked version. Sixty warnings in each process
# would hide the other lines of the log.
warnings.filterwarnings(
    "ignore",
    r".*(`owners`|`backfill_policy`).* is currently in beta",
    category=dg.BetaWarning,
)
