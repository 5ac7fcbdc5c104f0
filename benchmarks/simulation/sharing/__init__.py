"""How members share their time among their partitions, as real clients do.

`way` defines the protocol. `proportional` is the ideal; `chunks` models kafka-python, Java and
aiokafka's `async for`; `arrival_order` librdkafka; `batches` aiokafka's `getmany()`. `clients` has
them by name. Measured on a real broker: docs/measurements.md.
"""
