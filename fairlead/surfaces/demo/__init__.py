"""The demo: a small real cluster with a real problem, which is planned and drained.

`scenario` has the topics, backlogs and consumers; `worker` is one consumer process;
`topics_and_consumers` starts them; `run`, which is `fairlead demo`, measures what the plan changed,
and `report` shows it; `dev` is `fairlead dev`.
"""
