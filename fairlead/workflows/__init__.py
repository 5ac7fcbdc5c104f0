"""The steps of a plan, as functions that use the stores and gateways of their callers.

`sampling` takes samples, `diagnosing` diagnoses groups; `planning_one_group` plans a group from a
sample, `snapshot_decisions` decides on the groups of a snapshot; `proposal` stores decisions;
`reconciling` makes plan topic and database agree, `publication` runs this for due groups;
`differences` compares topic and database; `delivery` creates records; `rollback` proposes an old
version again; `adoption` measures the adherence to plans.
"""
