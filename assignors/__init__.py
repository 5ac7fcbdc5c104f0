"""Partition assignors: pure functions from a `Problem` to an `Assignment`.

One algorithm a module, arrays inside, dictionaries only at the edges. Nothing here does I/O, and
nothing here knows of Kafka clients, Spark or Dagster.
"""
