"""Fairlead's assignors in a consumer, without plans.

`kafka_python` and `aiokafka` have them for their clients; `rule` is what the leader does; `lags`
asks Kafka, for those by lag.
"""
