"""What samples show of a group, and whether a plan would help: pure functions over arrays.

The five steps are `read`, `estimate`, `forecast`, `diagnosis` and `decide`; `steps` combines the
first four. Arrays of samples are in `sample_series`, the input in `question`, a policy's rules in
`rules`, and numbers that several modules share in `thresholds`. Nothing here knows Dagster, Spark,
Kafka or Postgres: numpy and `assignors` are all it needs. docs/analysis.md explains it with an
example.
"""
