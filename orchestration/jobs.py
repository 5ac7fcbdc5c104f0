"""The jobs `planning`, which runs the whole pipeline, and `adoption`, its last step."""

from typing import Final

import dagster as dg

from assets.about import about

#: Assets of the pipeline. They are listed by name: a selection of all assets would include those of
#: a project that merges the planner's definitions into its own.
STEPS: Final = (
    "group_offsets",
    "candidate_plans",
    "partition_lag",
    "assignment_plan",
    "published_plan",
    "plan_adoption",
)
#: Runs all steps in one process, so that they share one Spark session.
_ONE_PROCESS: Final = dg.in_process_executor

planning = dg.define_asset_job(
    "planning",
    selection=dg.AssetSelection.assets(*STEPS),
    description="Analyse groups, measure lag, store a plan or 'no change', publish what "
    "the policy approves, and record how far it is followed.",
    **about("consumers"),
    executor_def=_ONE_PROCESS,
)

adoption = dg.define_asset_job(
    "adoption",
    selection=dg.AssetSelection.assets("plan_adoption"),
    description="Trigger a rebalance if a broker assigns otherwise than the plan, and compare the "
    "plans with what consumers own now.",
    **about("consumers"),
    executor_def=_ONE_PROCESS,
)
