"""The jobs: plan (the whole pipeline), publish what was approved since, look at adoption."""

from typing import Final

import dagster as dg

from assets.about import about

#: By name: in another project's definitions "all" would be its assets, too.
STEPS: Final = (
    "group_offsets",
    "candidate_plans",
    "partition_lag",
    "assignment_plan",
    "published_plan",
    "plan_adoption",
)
#: One Spark session a process: a process a step would start one for each step.
_ONE_PROCESS: Final = dg.in_process_executor

planning = dg.define_asset_job(
    "planning",
    selection=dg.AssetSelection.assets(*STEPS),
    description="Analyse groups, measure lag, store a plan or 'no change', publish what "
    "the policy approves, and record how the group adopted it.",
    **about("consumers"),
    executor_def=_ONE_PROCESS,
)

publication = dg.define_asset_job(
    "publication",
    selection=dg.AssetSelection.assets("published_plan", "plan_adoption"),
    description="Reconcile plans and plan topic for the run's groups, as the sensor approved_plans "
    "does by itself.",
    **about("consumers"),
    executor_def=_ONE_PROCESS,
)

adoption = dg.define_asset_job(
    "adoption",
    selection=dg.AssetSelection.assets("plan_adoption"),
    description="Have brokers that assign follow published plans, and compare with these what "
    "the consumers own now.",
    **about("consumers"),
    executor_def=_ONE_PROCESS,
)
