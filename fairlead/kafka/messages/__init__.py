"""Messages of Kafka's protocol that kafka-python does not know, described as it describes them.

Belongs here: one JSON file a message, named like it, and the classes of them. Does not: asking.
"""
