"""A survey of all groups of a cluster, with samples in memory: no Postgres, Spark or Dagster.

Belongs here: the findings and their page. Belongs elsewhere: the analysis (`fairlead.domain`).
"""
