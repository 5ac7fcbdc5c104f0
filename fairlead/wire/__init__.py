"""Records in topics, byte for byte, and decisions that planner and consumers share.

`document` and `partition_sets` are a plan's bytes; `record` and `record_reading` its headers, with
`signing`; `members` the user data that clients exchange in a rebalance; `agreement` and `seals` the
records of the coordination topic; `partitions` the partition of a group's records; `fit` the shares
of a plan for the present members. Consumer applications import this package, so it
needs only the standard library, numpy and, for signatures, `cryptography`.
"""
