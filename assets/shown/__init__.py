"""What each step shows in the UI of the groups of one cohort.

For each step a few numbers, with the same keys in every run, so that Dagster plots them over time;
one table of groups, the worst first; and a sentence and a link for the group that needs attention
most. A plan that waits also shows what moves and how to decide.

One module a step, each a pure function from the library's results to Dagster metadata; `cohorts`
says which partition of a run gets which. Belongs here: what people look for first. Does not:
computing it (`fairlead`), how a value is written (`assets.presentation`), nor all that is known of
a group or a plan (pages, reviews, the command line).
"""
