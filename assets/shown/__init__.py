"""Metadata of each step about the groups of one cohort, as the Dagster UI shows it.

Each step shows a few numbers, with the same keys in every run, so that Dagster plots them over
time; a table of groups or partitions, worst first; and a sentence and a link for the group that
needs attention most. For a plan that waits for approval, it also shows the moves, and how to
approve or reject it.

There is one module per step, with pure functions from the library's results to Dagster metadata;
`cohorts` adds them to the partitions of a run. Belongs here: the most important results. Does not:
computing them (`fairlead`), formatting values (`assets.presentation`), nor all details of a group
or a plan (pages, reviews, the command line).
"""
