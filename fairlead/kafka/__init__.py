"""The planner's access to Kafka: groups, members, offsets and the plan topic.

`gateway` reads consumer groups into a snapshot: members (`descriptions`), begin and end offsets
(`offsets`), and committed offsets (`commits`). `plan_topic` publishes plans, `members_topic`
publishes the members of groups, and `compacted_topic` reads the records of both topics.
`kafka_python_settings` gives both client libraries the same settings, `requests` retries requests,
and `refusals` explains failed logins.

Most requests use confluent-kafka (librdkafka). Members' subscriptions come from kafka-python,
because librdkafka does not decode them.
"""
