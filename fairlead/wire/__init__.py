"""What stands in topics, byte for byte, and what both sides must make of it alike.

`document` and `partition_sets` are a plan's bytes; `record` and `record_reading` what stands beside
them, with `signing`; `members` what clients tell each other in a rebalance; `pins` and `pin_seals`
the records of the pin topic; `partitions` where a group's records stand; `fit` what a plan means
for the members there are. Standard library, numpy and the library that signs alone: consumer
applications import this.
"""
