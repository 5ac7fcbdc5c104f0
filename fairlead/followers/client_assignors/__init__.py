"""Fairlead's assignors in a consumer, without plans.

`kafka_python` and `aiokafka` have the assignors of their clients; `rule` decides for the leader;
`lags` fetches lags for assignors by lag.
"""
