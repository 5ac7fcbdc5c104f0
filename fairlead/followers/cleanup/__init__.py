"""Tell an application which partitions a rebalance really takes and adds (KIP-54's pattern).

An eager client names all partitions at each rebalance. `kafka_python` and `aiokafka` are listeners
for their clients; `holdings` compares assignments.
"""
