"""Analysis of a group from samples, and whether a plan would help: pure functions over arrays.

The five steps are `read`, `estimate`, `forecast`, `diagnosis` and `decide`; `steps` combines the
first four. Arrays of samples are in `sample_series`, the input in `question`, a policy's rules in
`rules`, and numbers that several modules share in `thresholds`. Needs only numpy and `assignors`,
neither Dagster, Spark, Kafka nor Postgres. docs/analysis.md explains the analysis with an example.
"""
