"""PySpark: computes the lag and the candidate plans of all groups in a planning run.

`session` opens the session; `warehouse` stores snapshots and results as Parquet; `lag` measures
every partition; `candidates` analyses groups and runs the assignors.
"""
