"""Partition assignors: pure functions from a `Problem` to an `Assignment`.

One algorithm per module, arrays inside, dictionaries only at the edges. Nothing here does I/O or
imports Kafka clients, Spark or Dagster.
"""
