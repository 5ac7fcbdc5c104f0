"""Messages of Kafka's protocol that kafka-python lacks, in kafka-python's format.

Belongs here: a JSON file and a class for each message. Belongs elsewhere: sending messages.
"""
