"""The pipeline's steps as Dagster assets, one module a step, each one call into the library.

From left to right: `group_offsets`, `candidate_plans` and beside it `partition_lag`,
`assignment_plan`, `published_plan`, `plan_adoption`; beside them `checks`, and what they share:
`partitions`, `resources`, `retry_policy`, `about` (owners, tags, sources of definitions), `shown`
(what each step shows in the UI) and `presentation` (the format of values there).

Modules here must not use `from __future__ import annotations`: Dagster reads the annotations.
"""

import warnings

import dagster as dg

# We use beta features of Dagster knowingly, with a locked version. Sixty warnings in each process
# would hide the other lines of the log.
warnings.filterwarnings(
    "ignore",
    r".*(`owners`|`backfill_policy`|[cC]ode_?[rR]eference).* is currently in beta",
    category=dg.BetaWarning,
)
