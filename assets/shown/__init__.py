"""What each step shows in the UI of the groups of one cohort: figures, tables, plots, links.

One module a step, each a pure function from the library's results to Dagster metadata; `cohorts`
says which partition of a run gets which. Belongs here: what people want to see, the worst first.
Does not: computing it (`fairlead`), nor how a value is written (`assets.presentation`).

Keys are the same in every run, so that Dagster plots the numbers among them over time. Where a
cohort has several groups, figures and plots are those of the one that needs attention most, which
`shown in detail` names.
"""
