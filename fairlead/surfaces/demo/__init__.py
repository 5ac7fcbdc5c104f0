"""The demo: a small real cluster with unbalanced groups, before and after a plan.

`scenario` defines topics, backlogs and consumers; `worker` is one consumer process;
`topics_and_consumers` creates the topics and starts the consumers; `run` is `fairlead demo`, which
measures the effect of a plan; `report` shows the effect; `dev` is `fairlead dev`.
"""
