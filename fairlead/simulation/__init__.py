"""A consumer group, and whoever decides about it, in a closed loop.

`scenario` says what happens to a group, with `traffic`, `costs`, `crawling`, `churn` and `misses`,
`catalogue` has the scenarios by name; `world` draws one of them by a seed. `consumption` lets
records wait and be read, by the way in which members share their time (`sharing`); `commits` says
what of that is committed, `membership` who is there, `seen` what a planner keeps of it.
`controllers`, `planner` and `oracle` decide who reads what, `registry` has them by name; `loop`
runs one of them in a world, `run_figures` measures what came of it. Numpy, the assignors and the
judgement alone: nothing here knows Kafka, Spark, Postgres or Dagster.
"""
