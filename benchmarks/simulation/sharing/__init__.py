"""Ways in which members share their time over their partitions, each by what real clients do.

`way` says what a way is, `chunks` what all fetching clients have in common. `proportional` is the
ideal, `chunks` kafka-python, Java and aiokafka's `async for`, `arrival_order` librdkafka, `batches`
aiokafka's `getmany()`. `clients` has them by name. Measured on a real broker: docs/measurements.md.
"""
