"""The demo: a small real cluster with a real problem, planned and drained before your eyes.

`scenario` says which topics, backlogs and consumers there are; `worker` is one consumer process;
`cluster` starts them; `drain` and `report` measure and show what the plan changed; `run` is
`fairlead demo`, `dev` is `fairlead dev`.
"""
