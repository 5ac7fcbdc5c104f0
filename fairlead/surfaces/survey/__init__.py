"""A survey of a cluster: every group, by samples in memory, without Postgres, Spark and Dagster.

Belongs here: the findings and their page. Does not: the analysis (`fairlead.domain`).
"""
