"""Kafka as the planner sees it: groups, members, offsets, and the topic that carries plans.

`gateway` reads consumer groups into a snapshot of columns; `descriptions` says who the members are,
`offsets` where partitions begin, end and were committed; `plan_topic` publishes plans and reads
them back. `kafka_python_settings` gives both client libraries the same settings, `requests`
retries, `refusals` says why a cluster lets nobody in.

confluent-kafka (librdkafka) does the bulk of the work; members' subscriptions come from
kafka-python, because librdkafka does not decode them.
"""
