"""The pipeline's steps as Dagster assets, one module a step, each one call into the library.

From left to right: `group_offsets`, `partition_lag`, `candidate_plans`, `assignment_plan`,
`published_plan`, `plan_adoption`; beside them `checks`, and what they share: `partitions`,
`resources` and `presentation` (how metadata is shown).

Modules here must not use `from __future__ import annotations`: Dagster reads the annotations.
"""
