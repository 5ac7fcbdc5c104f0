"""What the Dagster UI shows about each step of the pipeline, for the groups of a cohort.

Each step shows a few numbers, with the same keys in every run, so that Dagster plots them over
time. Each step also shows a table of groups or partitions, worst first, and a sentence and a link
for the group that needs attention most. If a plan waits for approval, `assignment_plan` shows the
plan's moves, and how to approve or reject the plan.

There is one module per step. The modules' pure functions turn the library's results into Dagster
metadata, and `cohorts` adds the metadata to the partitions of a run. Belongs here: the most
important results. Belongs elsewhere: computing results (`fairlead`), formatting values
(`assets.presentation`), and all details of a group or a plan (pages, reviews, the command line).
"""
