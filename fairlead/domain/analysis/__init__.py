"""Analysis of a consumer group from offset samples, and the decision whether to make a plan.

The five steps are `read`, `estimate`, `forecast`, `diagnosis` and `decide`; `steps` combines the
first four. Arrays of samples are in `sample_series`, the input in `question`, a policy's rules in
`rules`, and numbers that several modules share in `thresholds`. All functions are pure, work on
arrays, and need only numpy and `assignors`. docs/analysis.md explains the analysis by an example.
"""
