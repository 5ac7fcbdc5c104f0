"""A survey of a cluster: every group, by looks that are kept in memory alone.

Belongs here: what is found, and its page. Does not: Postgres, Spark or Dagster, which it does
without; the analysis (`fairlead.domain`).
"""
