"""Partition assignors: pure functions from a `Problem` to an `Assignment`.

Each module has one algorithm. Algorithms work on arrays; only their inputs and results can be
dictionaries. Nothing here does I/O or imports Kafka clients, Spark or Dagster.
"""
