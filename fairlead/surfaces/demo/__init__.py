"""The demo: a small real cluster with a real problem, planned and drained before your eyes.

`scenario` says which topics, backlogs and consumers there are; `worker` is one consumer process;
`topics_and_consumers` starts them; `run`, which is `fairlead demo`, measures what the plan changed,
and `report` shows it; `dev` is `fairlead dev`.
"""
