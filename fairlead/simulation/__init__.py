"""A consumer group in a closed loop, with which `fairlead backtest` replays a recorded group.

`world` has what does not depend on the assignment: arrivals, members and their speeds.
`consumption` lets members read, `commits` has their committed offsets, `membership` states the
group as an assignment problem, `seen` keeps the samples that a planner would have. `controllers`
decide which member reads which partition, `loop` runs a controller in a world. Needs only Numpy,
the assignors and the analysis; nothing here knows Kafka, Spark, Postgres or Dagster.

Synthetic groups extend these classes in `benchmarks/simulation`: costs of records, ways in which
clients read, scenarios.
"""
