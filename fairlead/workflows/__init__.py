"""The steps of a plan, over stores and gateways that callers pass in.

`sampling` takes samples, `diagnosing` diagnoses groups; `planning_one_group` plans a group from a
sample, `snapshot_decisions` decides on the groups of a snapshot; `proposal` stores decisions;
`reconciling` makes plan topic and database agree, `publication` does this on a cluster;
`differences` compares both; `delivery` creates records; `rollback` proposes an old version again;
`adoption` measures the adherence to plans.
"""
