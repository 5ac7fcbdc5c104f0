"""Metadata of each step about the groups of one cohort, as the Dagster UI shows it.

Each step shows a few numbers, with the same keys in every run, so that Dagster plots them over
time. It also shows a table of groups or partitions, worst first, and a sentence and a link for the
group that needs attention most. If a plan waits for approval, `assignment_plan` shows its moves,
and how to approve or reject it.

There is one module per step. Its pure functions turn the library's results into Dagster metadata,
and `cohorts` adds this metadata to the partitions of a run. Belongs here: the most important
results. Belongs elsewhere: computing results (`fairlead`), formatting values
(`assets.presentation`), and all details of a group or a plan (pages, reviews, the command line).
"""
