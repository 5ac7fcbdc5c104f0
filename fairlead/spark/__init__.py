"""PySpark: computes lag and candidate plans of all groups of a run.

`session` opens the session; `warehouse` stores snapshots and results as Parquet; `lag` measures
every partition; `candidates` analyses groups and runs the assignors.
"""
