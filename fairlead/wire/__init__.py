"""Formats of Fairlead's records in Kafka, and rules that planner and consumers share.

`document` and `partition_sets` define a plan's bytes; `record`, `record_reading` and `signing` its
headers; `members` the user data that clients exchange in a rebalance; `agreement` and `seals` the
records of the coordination topic; `members_record` those of the members topic; `work_report` the
metadata of committed offsets. `partitions` finds the partition of a group's records, and `fit`
adapts a plan to the present members.

Consumer applications import this package, so it needs only the standard library, numpy and, for
signatures, `cryptography`.
"""
