"""The pipeline's steps as Dagster assets, one module a step, each one call into the library.

From left to right: `group_offsets`, `candidate_plans` and beside it `partition_lag`,
`assignment_plan`, `published_plan`, `plan_adoption`; beside them `checks`, and what they share:
`partitions`, `resources`, `retry_policy`, `about` (what definitions say of themselves), `shown`
(what each step shows in the UI) and `presentation` (how a value is written there).

Modules here must not use `from __future__ import annotations`: Dagster reads the annotations.
"""

import warnings

import dagster as dg

# What Dagster may still change is used knowingly, with a locked version; said sixty times in each
# process, it would drown what people have to read in the log.
warnings.filterwarnings(
    "ignore",
    r".*(`owners`|`backfill_policy`|[cC]ode_?[rR]eference).* is currently in beta",
    category=dg.BetaWarning,
)
