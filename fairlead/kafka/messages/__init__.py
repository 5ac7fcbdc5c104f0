"""Messages of Kafka's protocol that kafka-python lacks, in its own format.

Belongs here: a JSON file for each message, and its class. Does not: sending them.
"""
