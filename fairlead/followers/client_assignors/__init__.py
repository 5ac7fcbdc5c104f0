"""Fairlead's assignors for consumers that use them directly, without plans.

`kafka_python` and `aiokafka` contain the assignor classes for these clients; `rule` decides for the
group leader; `lags` fetches lags for assignors that use lag.
"""
