"""PySpark: lag and candidate plans of all groups of a run, in one job.

`session` opens the session; `warehouse` stores snapshots and results as Parquet; `lag` measures
every partition; `candidates` analyses groups and runs the assignors.
"""
