"""Formats of Fairlead's records in Kafka, and rules that planner and consumers share.

`document` and `partition_sets` define the bytes of a plan, and `record`, `record_reading` and
`signing` the headers of its record. `members` defines the user data that clients exchange in a
rebalance, `agreement` and `seals` the records of the coordination topic, `members_record` the
records of the members topic, and `work_report` the metadata of committed offsets. `partitions`
finds the partition of a group's records, and `fit` adapts a plan to the present members.

Consumer applications import this package, so it needs only the standard library, numpy and, for
signatures, `cryptography`.
"""
