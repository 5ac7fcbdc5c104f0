"""Simulation of a consumer group with a planner; `fairlead backtest` replays recorded groups in it.

`world` contains the input that does not depend on the assignment: arrivals, members and their
speeds. `consumption` simulates reading, `commits` simulates committed offsets, and `sample_history`
the samples of a planner. `membership` converts the group to an assignment problem. `controllers`
decide which member reads which partition, and `loop` runs a controller in a world. The simulation
needs only numpy, the assignors and the analysis, not Kafka, Spark, Postgres or Dagster.

`benchmarks/simulation` extends these classes for synthetic groups: with processing costs of
records, different ways in which clients read, and scenarios.
"""
