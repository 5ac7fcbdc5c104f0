"""A consumer group as a fluid, and whoever decides about it, in a closed loop.

`traffic` and `scenario` say what happens to a group, `catalogue` has the scenarios by name; `world`
draws one of them by a seed. `fluid` lets records wait and be read, `commits` says what of that is
committed, `membership` who is there, `seen` what a planner keeps of it. `controllers`, `planner`
and `oracle` decide who reads what, `registry` has them by name; `loop` runs one of them in a world,
`course` measures what came of it. Numpy, the assignors and the judgement alone: nothing here knows
Kafka, Spark, Postgres or Dagster.
"""
