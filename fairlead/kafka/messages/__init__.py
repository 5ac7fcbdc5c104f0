"""Messages of Kafka's protocol that kafka-python does not know, described as it describes them.

Belongs here: one JSON file a message, named like it. Does not: code.
"""
