"""The demo: a small real cluster with unbalanced groups, before and after a plan.

`scenario` has the topics, backlogs and consumers; `worker` is one consumer process;
`topics_and_consumers` starts them; `run` is `fairlead demo`, which measures the effect of a plan;
`report` shows it; `dev` is `fairlead dev`.
"""
