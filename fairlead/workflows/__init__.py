"""The steps of a plan, over stores and gateways that callers pass in.

`sampling` takes samples, `diagnosing` says what is the matter; `planning_one_group` plans a group
from a sample, `snapshot_decisions` those of a snapshot; `proposal` stores decisions; `reconciling`
brings plan topic and database to agreement, `publication` does so on a cluster; `delivery` makes
records; `rollback`, with `redraft`, brings an old version back; `adoption` measures who follows.
"""
