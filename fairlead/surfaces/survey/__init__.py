"""A survey of a cluster: every group, by samples in memory.

Belongs here: what is found, and its page. Does not: Postgres, Spark or Dagster, which it does
without; the analysis (`fairlead.domain`).
"""
