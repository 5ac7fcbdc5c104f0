"""A consumer group in a closed loop, with which `fairlead backtest` replays a recorded group.

`world` has the input that does not depend on the assignment: arrivals, members and their speeds.
`consumption` simulates reading, `commits` committed offsets, `sample_history` the samples of a
planner; `membership` converts the group to an assignment problem. `controllers` decide which
member reads which partition, `loop` runs a controller in a world. Needs only Numpy, the assignors
and the analysis, not Kafka, Spark, Postgres or Dagster.

Synthetic groups extend these classes in `benchmarks/simulation`: costs of records, ways in which
clients read, scenarios.
"""
