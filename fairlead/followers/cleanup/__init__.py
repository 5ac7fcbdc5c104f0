"""Tell an application what it lost and what it got, where a client tells all and all again.

`kafka_python` and `aiokafka` are listeners for their clients (KIP-54's pattern), over `holdings`.
"""
