"""Looks at the planned groups, taken often and apart from planning.

`look` lays a snapshot out as a look, one row a group; `archive` keeps looks as Parquet; `pace` says
how often they may be taken; `taking` takes one; `arrays` hands a group's looks to the judgement.
Nothing here needs Spark, Dagster or Postgres.
"""
