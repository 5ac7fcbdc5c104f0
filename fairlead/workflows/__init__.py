"""The steps of a plan, as functions that get stores and gateways as arguments.

`sampling` takes samples, `diagnosing` diagnoses groups; `planning_one_group` plans a group from a
sample, `snapshot_decisions` decides on the groups of a snapshot; `proposal` stores decisions;
`publication` finds the groups with something to send; `reconciling` sends their records, so that
the plan topic agrees with the database; `differences` compares topic and database; `delivery`
creates records; `rollback` proposes an old version again; `adoption` measures the adherence to
plans.
"""
