"""A consumer group in a closed loop: what `fairlead backtest` replays a recorded group with.

`world` holds what happens to the group, whoever reads: arrivals, members and their speeds.
`consumption` lets its members read, `commits` says what they have committed, `membership` states
the group as an assignment problem, `seen` keeps the samples that a planner would have.
`controllers` decide who reads what, `loop` runs one of them in a world. Numpy, the assignors and
the analysis alone: nothing here knows Kafka, Spark, Postgres or Dagster.

Made-up groups extend these classes in `benchmarks/simulation`: costs of records, ways in which
clients read, scenarios.
"""
