"""The steps of a plan, as functions that get stores and gateways as arguments.

`sampling` takes samples, `diagnosing` diagnoses groups; `planning_one_group` plans a group from a
sample, `snapshot_decisions` decides on the groups of a snapshot; `proposal` stores decisions;
`reconciling` makes plan topic and database agree, `publication` does so for the groups that need
it; `differences` compares topic and database; `delivery` creates records; `rollback` proposes an
old version again; `adoption` measures the adherence to plans.
"""
