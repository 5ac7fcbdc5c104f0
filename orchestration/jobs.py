"""The jobs: plan (the whole pipeline), publish what was approved since, look at adoption."""

import dagster as dg

from assets.about import OWNERS, changes, written_here

planning = dg.define_asset_job(
    "planning",
    selection=dg.AssetSelection.all(),
    description="Measure lag, compute every candidate, store a plan or 'no change', publish what "
    "the policy approves, and record how the group adopted it.",
    owners=OWNERS,
    tags=changes("consumers"),
    metadata=written_here(),
)

publication = dg.define_asset_job(
    "publication",
    selection=dg.AssetSelection.assets("published_plan", "plan_adoption"),
    description="Publish plans that were approved since they were planned.",
    owners=OWNERS,
    tags=changes("consumers"),
    metadata=written_here(),
)

adoption = dg.define_asset_job(
    "adoption",
    selection=dg.AssetSelection.assets("plan_adoption"),
    description="Compare what the consumers own now with the published plan.",
    owners=OWNERS,
    tags=changes("history"),
    metadata=written_here(),
)
