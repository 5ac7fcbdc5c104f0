"""Tell applications which partitions a rebalance really takes away and adds (KIP-54).

At each rebalance, an eager client reports all its partitions as revoked and then as assigned.
`kafka_python` and `aiokafka` contain rebalance listeners for these clients; `holdings` compares
assignments.
"""
