"""How members share their time among their partitions, depending on the client.

`way` defines the protocol. `proportional` is an ideal client. `chunks` models kafka-python, Java
and aiokafka's `async for`; `arrival_order` models librdkafka, and `batches` aiokafka's `getmany()`.
`clients` has them by name. docs/measurements.md has measurements of the real clients.
"""
