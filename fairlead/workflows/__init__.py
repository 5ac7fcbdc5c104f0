"""What happens to a plan, step by step, over stores and gateways that are handed in.

`looking` takes looks, `diagnosing` says what is the matter; `planning_one_group` plans a group from
a look, `snapshot_decisions` those of a snapshot; `proposal` stores what was decided; `delivery` is
how anything reaches the plan topic, for `publication`, `lease` and `retirement`, all of which
`publication_pass` puts in order; `reconciliation` holds topic and database against each other;
`rollback`, with `redraft`, brings an old version back; `adoption` sees who follows.
"""
