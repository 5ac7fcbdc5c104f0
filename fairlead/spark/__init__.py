"""PySpark: lag and candidate plans of all groups of a run, in one job.

`session` opens the session; `warehouse` keeps snapshots and results as Parquet; `lag` measures
every partition; `candidates` runs the assignors, one group a task.
"""
