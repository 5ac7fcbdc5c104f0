"""The planner's access to Kafka: groups, members, offsets and the plan topic.

`gateway` reads consumer groups into a snapshot; `descriptions` reads members, `offsets` begin and
end offsets, `commits` committed offsets; `plan_topic` publishes plans, `members_topic` groups'
members, and `compacted_topic` reads both back.
`kafka_python_settings` gives both client libraries the same settings, `requests` retries,
`refusals` explains failed logins.

confluent-kafka (librdkafka) does most of the work; members' subscriptions come from kafka-python,
because librdkafka does not decode them.
"""
