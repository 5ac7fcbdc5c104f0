"""Report to an application the partitions that a rebalance really takes and adds (KIP-54).

An eager client lists all partitions at each rebalance. `kafka_python` and `aiokafka` are listeners
for their clients; `holdings` compares assignments.
"""
